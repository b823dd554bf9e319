import { type Bar, barChart, type Chart, type Group, type Mark, type Panel } from './bar-chart.ts';
import { chartedTables, columnOf, type Figure, figuresOf, type Table } from './document-tables.ts';

type Row = readonly string[];

/** The charts, by their names: how each is drawn from its table. */
const charts: Readonly<Record<string, (table: Table) => Chart>> = {
  up: (table) => ({
    title: 'up of N resources, against a null server',
    unit: 'seconds; lengths and brackets: times those of the null server',
    panels: [{ title: '', groups: table.rows.map((row) => againstFloor(table, row)) }],
  }),
  'request-cpu': (table) => ({
    title: 'CPU of a request that saves',
    unit: 'milliseconds of the server, without Postgres',
    panels: [{ title: '', groups: byServer(table, 'CPU ms', 0) }],
  }),
  complete: (table) => ({
    title: 'Time of complete',
    unit: 'milliseconds',
    panels: ['p50', 'p99'].map((title, at) => ({ title, groups: byServer(table, 'complete', at) })),
  }),
  fleet: (table) => ({
    title: 'Throughput of a fleet',
    unit: 'by the number of processes; dashed: that many times the throughput of one; in brackets: cores of all processes',
    panels: table.rows.map((row) => byProcesses(table, row)),
  }),
  'large-documents': (table) => ({
    title: 'Documents of 100 MB',
    unit: 'CPU seconds (at most the goal); MB per second (at least the goal)',
    panels: ['CPU s', 'MB/s'].map((title) => ({ title, groups: byDocument(table, title) })),
  }),
  memory: (table) => ({
    title: 'Memory with documents of 100 MB',
    unit: 'peak, MB',
    panels: [
      {
        title: '',
        groups: table.rows.map((row) => ({
          label: labelOf(row),
          bars: barsOf(row[columnOf(table, 'MB')], ['']),
          mark: goalOf(row[columnOf(table, 'goal')]),
        })),
      },
    ],
  }),
  attacks: (table) => ({
    title: "Another organization's GET /api/user under attack",
    unit: 'milliseconds',
    panels: [{ title: '', groups: byRow(table.rows, columnOf(table, 'p50/'), ['p50', 'longest']) }],
  }),
  growth: (table) => ({
    title: 'Calls that cost more with more stacks',
    unit: 'Postgres pages with 10,000/1,000,000 stacks; lengths and brackets: times as many',
    panels: [{ title: '', groups: growth(table) }],
  }),
  'other-goals': (table) => ({
    title: 'Other goals',
    unit: 'measured, of the goal; lengths: the last or the upper figure',
    panels: [
      {
        title: '',
        groups: table.rows.map((row) => {
          const [measured = '', goal = ''] = ['measured', 'goal'].map((name) => row[columnOf(table, name)]);
          const value = lastOf(measured).value / lastOf(goal).value;
          const text = `${measured} of ${goal.replace(', missed', '')}`;
          return { label: labelOf(row), bars: [{ series: '', text, value }], mark: { label: 'goal', value: 1 } };
        }),
      },
    ],
  }),
};

/** Draws the charts that documents show. Throws if one is shown that is not known, or is not shown. */
export function drawCharts(documents: readonly string[]): Map<string, string> {
  const tables = documents.flatMap((document) => [...chartedTables(document)]);
  const drawn = new Map<string, string>();
  for (const [name, table] of tables) {
    const chartOf = charts[name];
    if (chartOf === undefined) throw new Error(`no chart is called ${name}`);
    drawn.set(name, barChart(chartOf(table)));
  }
  const hidden = Object.keys(charts).filter((name) => !drawn.has(name));
  if (hidden.length > 0) throw new Error(`no document shows the chart ${hidden.join(', ')}`);
  return drawn;
}

const labelOf = ([label = '']: Row): string => label;
const isGoal = (label: string): boolean => /^(goal|limit)\b/.test(label);

function firstOf(cell: string): Figure {
  const [figure] = figuresOf(cell);
  if (figure === undefined) throw new Error(`"${cell}" has no figure`);
  return figure;
}

/** The last figure of a cell: the p99 of `p50/p99`. */
function lastOf(cell: string): Figure {
  return figuresOf(cell).at(-1) ?? firstOf(cell);
}

/** The bars of a cell with a figure for each of the series. None if it is empty. */
function barsOf(cell = '', series: readonly string[]): Bar[] {
  const figures = figuresOf(cell);
  if (figures.length > 0 && figures.length < series.length) throw new Error(`"${cell}" has too few figures`);
  return series.flatMap((name, at) => {
    const figure = figures[at];
    return figure === undefined ? [] : [{ series: name, ...figure }];
  });
}

/** The line of a goal, whose cell has one figure for all, or one for each. */
function goalOf(cell = '', at = 0): Mark | undefined {
  const figures = figuresOf(cell);
  const figure = figures[at] ?? figures[0];
  return figure && { label: `goal ${figure.text}`, value: figure.value };
}

function againstFloor(table: Table, row: Row): Group {
  const floor = firstOf(row[columnOf(table, 'null')] ?? '').value;
  const bars = ['null', 'embedded', 'cluster', 'file'].flatMap((series) =>
    barsOf(row[columnOf(table, series)], [series]).map((bar) => ({
      ...bar,
      text: row[columnOf(table, series)] as string,
      // The ratio in brackets is not rounded twice.
      value: figuresOf(row[columnOf(table, series)] ?? '')[1]?.value ?? bar.value / floor,
    })),
  );
  return { label: `N = ${labelOf(row)}`, bars, mark: goalOf(row[columnOf(table, 'goal')]) };
}

/** Groups of the servers in a table whose first cell is empty where it repeats the one above. */
function byServer(table: Table, column: string, at: number): Group[] {
  const groups: Group[] = [];
  for (const row of table.rows) {
    if (labelOf(row) !== '') groups.push({ label: labelOf(row), bars: [] });
    const group = groups.pop();
    if (group === undefined) throw new Error('the first row has no name');
    const [server = '', cell = ''] = ['server', column].map((name) => row[columnOf(table, name)]);
    const [figure] = figuresOf(cell).slice(at);
    if (isGoal(server)) groups.push({ ...group, mark: goalOf(cell, at) });
    else if (figure) groups.push({ ...group, bars: [...group.bars, { series: server, ...figure }] });
    else groups.push(group);
  }
  return groups;
}

function byProcesses({ head }: Table, row: Row): Panel {
  const one = firstOf(row[1] ?? '').value;
  const groups = head.slice(1).flatMap((count, at) => {
    const text = row[at + 1] ?? '';
    const [bar] = barsOf(text, ['']);
    return bar ? [{ label: count, bars: [{ ...bar, text }], mark: { label: '', value: one * Number(count) } }] : [];
  });
  return { title: labelOf(row), groups };
}

/** Groups of the rows, each with the goal that follows it, whose name may say for which percentile it is. */
function byRow(rows: readonly Row[], column: number, series: readonly string[]): Group[] {
  const groups: Group[] = [];
  for (const row of rows) {
    if (!isGoal(labelOf(row))) {
      groups.push({ label: labelOf(row), bars: barsOf(row[column], series) });
      continue;
    }
    const [group, mark] = [groups.pop(), goalOf(row[column])];
    if (group === undefined || mark === undefined) throw new Error(`the goal "${row[column]}" has no figure or no row`);
    const [percentile] = /\bp\d+/.exec(labelOf(row)) ?? [];
    groups.push({ ...group, mark: percentile ? { ...mark, label: `${mark.label} at ${percentile}` } : mark });
  }
  return groups;
}

function byDocument(table: Table, name: string): Group[] {
  const [, names = ''] = (table.head[columnOf(table, 'CPU s')] ?? '').split(': ');
  return byRow(table.rows, columnOf(table, name), names.split(', '));
}

function growth(table: Table): Group[] {
  const column = columnOf(table, 'pages');
  const limit = table.rows.find((row) => isGoal(labelOf(row)));
  const mark = limit && { label: `${labelOf(limit)}: ${limit[column]}`, value: firstOf(limit[column] ?? '').value };
  return table.rows
    .filter((row) => row !== limit)
    .map((row) => {
      const text = row[column] ?? '';
      const [few, many] = figuresOf(text);
      if (few === undefined || many === undefined) throw new Error(`"${text}" has too few figures`);
      const value = many.value / few.value;
      return { label: labelOf(row), bars: [{ series: '', text: `${text} (${value.toPrecision(2)})`, value }], mark };
    });
}
