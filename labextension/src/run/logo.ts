/** The mark: a tile grid with one tile raised, drawn on 16 × 16. */
export const LOGO_TILES: readonly { x: number; y: number; lit: boolean }[] = [0, 1, 2].flatMap(row =>
  [0, 1, 2].map(column => ({ x: 1 + 5 * column, y: 1 + 5 * row, lit: row === 2 - column }))
);

export const LOGO_TILE = 4;

/** As an SVG text for JupyterLab's icons, which are coloured through class names. */
export function logoSvg(): string {
  const tiles = LOGO_TILES.map(
    ({ x, y, lit }) =>
      `<rect class="${lit ? 'jp-icon-brand0' : 'jp-icon3'}" x="${x}" y="${y}" width="${LOGO_TILE}" height="${LOGO_TILE}" rx="0.8" fill="${lit ? '#2f6fd0' : '#8a939d'}"/>`
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16">${tiles.join('')}</svg>`;
}
