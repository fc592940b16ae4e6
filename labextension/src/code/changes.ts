import { unifiedMergeView } from '@codemirror/merge';
import type { Extension } from '@codemirror/state';

const KEPT = { margin: 3, minSize: 8 };

/** What changed since `before`, with lines that both have folded away. */
export function changesSince(before: string): Extension {
  return unifiedMergeView({
    original: before,
    mergeControls: false,
    syntaxHighlightDeletions: true,
    collapseUnchanged: KEPT
  });
}
