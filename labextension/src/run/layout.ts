import { hierarchy, type HierarchyNode } from 'd3-hierarchy';
import type { CandidateView } from '../schema';

/** A candidate's place in the drawn lineage: a row of its own, in the lane of its branch. */
export interface IPlaced {
  candidate: CandidateView;
  parent: IPlaced | null;
  row: number;
  lane: number;
  depth: number;
  /** Whether it leads to the current kernel, or is it. */
  trunk: boolean;
}

type Node = HierarchyNode<CandidateView | null>;

/**
 * Candidates as a tree in reading order. A child that leads to the current kernel stays in its parent's lane and comes
 * last; elsewhere the last one does. The others, and all that grew from the current kernel itself, are branches one lane
 * to the right, so that no edge crosses another.
 */
export function lineage(candidates: readonly CandidateView[], currentId: string | null): IPlaced[] {
  const children = new Map<string | null, CandidateView[]>();
  for (const candidate of candidates) {
    // A parent that is unknown, or not earlier, is none.
    const parent =
      candidate.parent_id !== null && children.has(candidate.parent_id) ? candidate.parent_id : null;
    children.set(candidate.id, []);
    children.set(parent, [...(children.get(parent) ?? []), candidate]);
  }
  const root: Node = hierarchy<CandidateView | null>(null, of => children.get(of?.id ?? null));
  const current = root.find(node => node.data !== null && node.data.id === currentId);
  const trunk = new Set<Node>(current?.ancestors());
  const stays = (node: Node): boolean => {
    const { parent } = node;
    const last = parent?.data && children.get(parent.data.id)?.at(-1);
    return trunk.has(node) || (parent !== current && !(parent && trunk.has(parent)) && node.data === last);
  };
  root.sort((a, b) => (a.parent === root ? 0 : Number(stays(a)) - Number(stays(b))));
  const placed = new Map<Node, IPlaced>();
  root.eachBefore(node => {
    if (node.data === null) {
      return;
    }
    const parent = placed.get(node.parent ?? root) ?? null;
    const lane = parent === null ? 0 : parent.lane + Number(!stays(node));
    const { depth } = node;
    placed.set(node, {
      candidate: node.data,
      parent,
      row: placed.size,
      lane,
      depth: depth - 1,
      trunk: trunk.has(node)
    });
  });
  return [...placed.values()];
}
