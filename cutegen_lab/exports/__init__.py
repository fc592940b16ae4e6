"""Export formats of a run: one entry each in :data:`FORMATS`; a kernel's formats are made from a :class:`Subject`.

Machine code in a format is the judged artifact's: nothing is compiled again.
"""

from cutegen_lab.exports.formats import FORMATS as FORMATS
from cutegen_lab.exports.formats import Format as Format
from cutegen_lab.exports.formats import format_of as format_of
from cutegen_lab.exports.subject import Subject as Subject
