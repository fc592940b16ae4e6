import { trans } from './words';

export interface ITable {
  title: string;
  heads: readonly string[];
  rows: readonly (readonly string[])[];
}

/** The class of a column: one of words begins at its left. */
const kind = ({ rows }: ITable, column: number) =>
  rows.some(row => /^[a-z]/i.test(row[column] ?? '')) ? 'cg-word' : '';

/** What a picture shows, as tables. */
export function Tables({ tables }: { tables: readonly ITable[] }) {
  return (
    <details class="cg-tables">
      <summary>{trans.__('As a table')}</summary>
      {tables.map(table => (
        <div key={table.title} class="cg-scroll" role="group" aria-label={table.title} tabIndex={0}>
          <table>
            <caption>{table.title}</caption>
            <thead>
              <tr>
                {table.heads.map((head, at) => (
                  <th key={at} scope="col" class={kind(table, at)}>
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {table.rows.map(([label, ...cells], at) => (
                <tr key={at}>
                  <th scope="row">{label}</th>
                  {cells.map((cell, column) => (
                    <td key={column} class={kind(table, column + 1)}>
                      {cell}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ))}
    </details>
  );
}
