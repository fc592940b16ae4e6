"""What kernel tests share: compiling and checking generated text, and keeping what passed for the next run.

``checking`` compiles a text and checks it, on a few draws where the question is whether the text is right, on all of
them where it is whether the judge is. ``keeping`` remembers what came out, by the hash of all that it follows from.
``pace`` is how much a run may still compile.
"""
