import type { ComponentChild } from 'preact';

interface IPhraseProps {
  /** A text whose places %1, %2 … are not filled yet. */
  text: string;
  /** What stands in them. */
  values: readonly ComponentChild[];
}

/** A whole sentence with elements in it, wherever a language puts them. */
export function Phrase({ text, values }: IPhraseProps) {
  return (
    <>
      {text
        .split(/(%\d+)/)
        .map((part, index) => (index % 2 ? (values[Number(part.slice(1)) - 1] ?? part) : part))}
    </>
  );
}
