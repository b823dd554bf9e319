import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { barChart } from '../../bench/support/bar-chart.ts';
import { chartedTables, columnOf, figuresOf } from '../../bench/support/document-tables.ts';
import { drawCharts } from '../../bench/support/goal-charts.ts';

const docs = path.join(import.meta.dirname, '../../docs');
const documents = readdirSync(docs)
  .filter((name) => name.endsWith('.md'))
  .map((name) => readFileSync(path.join(docs, name), 'utf8'));

describe('figuresOf', () => {
  test.each([
    ['', []],
    ['procella', []],
    ['0.97 (1.20)', [0.97, 1.2]],
    ['119/193', [119, 193]],
    ['2.2, 1.4', [2.2, 1.4]],
    ['1,449', [1_449]],
    ['150/12,289, 1,204,081', [150, 12_289, 1_204_081]],
    ['20/100, missed', [20, 100]],
    ['19–27/40–49 ms', [27, 49]],
    ['2.5 ± 1.2%', [2.5]],
  ])('reads %j', (cell, values) => {
    expect(figuresOf(cell).map(({ value }) => value)).toEqual(values);
  });

  test('keeps figures as they are written', () => {
    expect(figuresOf('1.20, 12,289/19–27').map(({ text }) => text)).toEqual(['1.20', '12,289', '19–27']);
  });
});

describe('chartedTables', () => {
  const table = '| a | `b` c |\n|---|---|\n| 1 | |\n| x \\| y | 2 |\n';

  test('finds the table above each image, of which one may have several', () => {
    const text = `# A\n\n| z |\n|---|\n\n${table}\n![First](images/first.svg)\n![Second](images/second.svg)\n\nText.\n`;
    const first = {
      head: ['a', 'b c'],
      rows: [
        ['1', ''],
        ['x | y', '2'],
      ],
    };
    expect([...chartedTables(text)]).toEqual([
      ['first', first],
      ['second', first],
    ]);
  });

  test('leaves out pictures in a text, and of other kinds', () => {
    expect(chartedTables(`${table}\n[one trace](images/trace.svg), ![A](images/a.webp)\n`).size).toBe(0);
  });

  test('refuses an image without a table in its section, an image that is shown twice, and a row with other cells', () => {
    const image = '![A](images/a.svg)\n';
    expect(() => chartedTables(`${table}\n## Next\n\n${image}`)).toThrow('images/a.svg has no table');
    expect(() => chartedTables(`${table}\n${image}${image}`)).toThrow('images/a.svg is shown twice');
    expect(() => chartedTables(`| a | b |\n|---|---|\n| 1 |\n\n${image}`)).toThrow('has 1 cells, not 2');
  });

  test('names a column that a table does not have', () => {
    const read = chartedTables(`${table}\n![A](images/a.svg)\n`).get('a');
    expect(read && columnOf(read, 'b')).toBe(1);
    expect(() => read && columnOf(read, 'goal')).toThrow('has no column "goal"');
  });
});

describe('charts of the documents', () => {
  test('follow their tables', () => {
    const before = drawCharts(documents);
    const after = drawCharts(
      documents.map((text) => text.replace('| journal, 256 KB | Holdfast |', '| journal, 256 KB | bare |')),
    );
    const changed = [...after].flatMap(([name, svg]) => (svg === before.get(name) ? [] : [name]));
    expect(changed).toEqual(['request-cpu', 'complete']);
    expect(after.get('complete')).toContain('journal, 256 KB: bare ');
  });

  test('show each figure of a row', () => {
    const figures = [...(drawCharts(documents).get('up') ?? '').matchAll(/class="v"[^>]*>([^<]+)</g)];
    const [, row = ''] = /^\| 500 \| (.*) \| [^|]* \|$/m.exec(documents.join('\n')) ?? [];
    expect(row).not.toBe('');
    expect(figures.map(([, text]) => text)).toEqual(expect.arrayContaining(row.split(' | ')));
  });

  test('are all shown, and known', () => {
    expect(() => drawCharts([])).toThrow('no document shows the chart up, ');
    expect(() => drawCharts(['| a |\n|---|\n\n![A](images/unknown.svg)\n'])).toThrow('no chart is called unknown');
  });
});

test('a chart is an image with a name and a description, and escapes texts', () => {
  const svg = barChart({
    title: 'a < b',
    unit: 's & ms',
    panels: [
      {
        title: '',
        groups: [{ label: 'x', bars: [{ series: '', text: '<1', value: 1 }], mark: { label: 'goal 2', value: 2 } }],
      },
    ],
  });
  expect(svg).toContain('<title id="title">a &lt; b</title>');
  expect(svg).toContain('<desc id="desc">s &amp; ms. x: &lt;1, goal 2.</desc>');
  expect(svg).not.toContain('<1');
  expect(svg).toContain('prefers-color-scheme:dark');
});
