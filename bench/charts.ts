import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { drawCharts } from './support/goal-charts.ts';

/**
 * No measurement: draws the charts of the goals from the tables of the documents.
 * With --check it only reports whether docs/images has them.
 * Usage: npm run bench charts -- [--check]
 */
const { values } = parseArgs({ options: { check: { type: 'boolean', default: false } } });
const docs = path.join(import.meta.dirname, '../docs');
const documents = readdirSync(docs).filter((name) => name.endsWith('.md'));
const charts = drawCharts(documents.map((name) => readFileSync(path.join(docs, name), 'utf8')));
for (const [name, svg] of charts) {
  const file = path.join(docs, 'images', `${name}.svg`);
  if (existsSync(file) && readFileSync(file, 'utf8') === svg) continue;
  if (values.check) {
    console.error(`docs/images/${name}.svg is not what its table says; run: npm run bench charts`);
    process.exitCode = 1;
  } else {
    writeFileSync(file, svg);
    console.log(`wrote docs/images/${name}.svg`);
  }
}
