// What CodeMirror measures, and jsdom does not lay out.
const nothing = { x: 0, y: 0, top: 0, left: 0, right: 0, bottom: 0, width: 0, height: 0, toJSON: () => '' };
Range.prototype.getBoundingClientRect = () => nothing;
Range.prototype.getClientRects = () => Object.assign([], { item: () => null });
Element.prototype.scrollIntoView = () => undefined;
// What Lumino derives its own events from, and jsdom lacks.
Object.assign(globalThis, { DragEvent: globalThis.MouseEvent });
// What a figure follows the width of its place with, and jsdom lacks.
Object.assign(globalThis, {
  ResizeObserver: class {
    observe() {}
    disconnect() {}
  }
});
// What Jupyter's components and CodeMirror ask for, and jsdom lacks.
Object.assign(globalThis, { matchMedia: () => Object.assign(new EventTarget(), { matches: false }) });
