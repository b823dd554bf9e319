import { beforeAll, describe, expect, test } from '@jest/globals';
import { BytePace } from '../../src/shared/platform/slices/byte-pace.ts';
import { archiveEvents } from '../../src/workers/events/archive-events.ts';
import { indexDue } from '../../src/workers/search/index-states.ts';
import { query } from '../support/database.ts';
import { encodeAll } from '../support/encode-versions.ts';
import { creation } from '../support/journal-entries.ts';
import { type CatalogTable, readFunctions, readTables } from '../support/sharding/catalog.ts';
import { rowSharding, schemaSharding } from '../support/sharding/citus-rules.ts';
import { rowBreaches, schemaBreaches } from '../support/sharding/known-breaches.ts';
import { isOfOrganization, organizationOf, places, stepOf } from '../support/sharding/places.ts';
import { createStack, deployment, ok, startUpdate } from '../support/state.ts';
import { testApp } from '../support/test-app.ts';
import { append, complete, saveVerbatim } from '../support/update-calls.ts';
import { setRule } from '../support/update-rules.ts';
import { createHook } from '../support/webhooks.ts';

// What keeps the rows of an organization from a shard or a schema of their own. docs/scale.md sums it up.

const app = testApp({ settings: { eventArchiveDelaySeconds: 0 } });
let tables: CatalogTable[];
beforeAll(async () => {
  tables = await readTables(app);
});

test('each table has its place: of an organization, shared, or of the installation', () => {
  expect(tables.map(({ name }) => name)).toEqual(Object.keys(places).toSorted());
});

test('a table of an organization has the column, or leads to one that has it by a key', () => {
  const columnsOf = (table: string) => tables.find(({ name }) => name === table)?.columns.map(({ name }) => name);
  for (const { name } of tables.filter((table) => isOfOrganization(table.name))) {
    const step = stepOf(name);
    expect({ name, columns: columnsOf(name) }).toEqual({
      name,
      columns: expect.arrayContaining([step?.column ?? 'organization_id']),
    });
    if (step === null) continue;
    const unique = tables.find((table) => table.name === step.to)?.uniqueKeys.map(({ columns }) => columns);
    expect({ name, unique }).toEqual({ name, unique: expect.arrayContaining([[step.key]]) });
  }
});

test('rows distributed by organization: what breaks the rules of Citus', () => {
  expect(rowSharding(tables)).toEqual(rowBreaches);
});

test('a schema for each organization: what breaks the rules of Citus', async () => {
  expect(schemaSharding(tables, await readFunctions(app))).toEqual(schemaBreaches);
});

test('the checker sees breaches of which the schema has none', async () => {
  const changed = (name: string, change: (table: CatalogTable) => Partial<CatalogTable>): CatalogTable[] =>
    tables.map((table) => (table.name === name ? { ...table, ...change(table) } : table));
  const withColumn =
    (column: object) =>
    ({ columns }: CatalogTable) => ({
      columns: columns.map((each) => (each.name === 'organization_id' ? { ...each, ...column } : each)),
    });
  expect(
    rowSharding(changed('projects', withColumn({ type: 'text' })))['the column is not a uuid, or generated'],
  ).toEqual({ projects: ['organization_id'] });
  const counted = changed('projects', ({ columns }) => ({
    columns: [
      ...columns,
      { name: 'number', type: 'integer', isNullable: false, isGenerated: false, isIdentity: true, hasDefault: false },
    ],
  }));
  expect(rowSharding(counted)['an identity is not a bigint']).toEqual({ projects: ['number'] });
  const keyed = changed('projects', ({ uniqueKeys }) => ({
    uniqueKeys: [...uniqueKeys, { name: 'by_name', columns: ['name'] }],
  }));
  expect(rowSharding(keyed)['a unique key of values, which would mean something else with the column']).toMatchObject({
    projects: ['by_name'],
  });
});

/** Tables of which each update adds rows. */
const largest = [
  ...['updates', 'checkpoints', 'checkpoint_chunks', 'version_chunks', 'journals', 'journal_entries', 'engine_events'],
  ...['event_segments', 'update_statistics', 'state_indexes', 'stack_resources', 'version_changes', 'resource_changes'],
  ...['webhook_events', 'webhook_deliveries', 'stack_days', 'audit_events'],
];

describe('with the rows of two organizations', () => {
  const count = async (from: string, where: string): Promise<number> => {
    const [row] = await query<{ rows: number }>(app, `select count(*)::int as rows from ${from} where ${where}`);
    return row?.rows ?? 0;
  };

  beforeAll(async () => {
    for (let made = 0; made < 2; made++) {
      const stack = await createStack(app);
      const { auth, organization, path } = stack;
      await createHook(app, stack, 'organization', { payloadUrl: 'https://hooks.example.com/x' });
      await setRule(app, stack, { kind: 'change-limit', project: 'proj', note: '', settings: { changes: 100 } });
      await ok(
        app.call('POST', `/api/orgs/${organization}/teams/pulumi`, { auth, body: { name: 'blue', description: '' } }),
      );
      await ok(app.call('POST', `${path}/encrypt`, { auth, body: { plaintext: Buffer.from('x').toString('base64') } }));
      for (const journal of [false, true]) {
        const update = await startUpdate(app, stack, { journal });
        if (journal) await ok(append(app, update, creation(1, 'a', stack)));
        else await ok(saveVerbatim(app, update, 1, deployment(2)));
        await ok(
          app.call('POST', `${update.path}/events/batch`, {
            auth: update.lease,
            body: { events: [{ sequence: 0, timestamp: 1, stdoutEvent: { message: 'x', color: 'never' } }] },
          }),
        );
        await ok(complete(app, update));
        // The events of the last update stay rows.
        if (!journal) await archiveEvents(app.context);
        await indexDue(app.context, { delaySeconds: 0, backlog: new BytePace(0) });
      }
      await ok(append(app, await startUpdate(app, stack, { journal: true }), creation(1, 'b', stack)));
    }
    await encodeAll(app);
  });

  test('each row reaches its organization, by its own column and by its step', async () => {
    const filled: string[] = [];
    for (const { columns, name } of tables.filter((table) => isOfOrganization(table.name))) {
      const found = organizationOf(name, 't');
      if ((await count(name, 'true')) > 0) filled.push(name);
      // The key for documents is of the installation.
      const exempt = name === 'encryption_keys' ? 't.stack_id is not null' : 'true';
      expect({ name, lost: await count(`${name} t`, `${exempt} and ${found} is null`) }).toEqual({ name, lost: 0 });
      if (stepOf(name) === null || !columns.some((column) => column.name === 'organization_id')) continue;
      const other = await count(`${name} t`, `t.organization_id <> ${found}`);
      expect({ name, other }).toEqual({ name, other: 0 });
    }
    expect(filled).toEqual(expect.arrayContaining(largest));
  });

  test('no foreign key joins rows of two organizations', async () => {
    for (const { foreignKeys, name } of tables.filter((table) => isOfOrganization(table.name)))
      for (const key of foreignKeys.filter(({ references }) => isOfOrganization(references))) {
        const on = key.columns.map((column, at) => `t.${column} = r.${key.referencedColumns[at]}`).join(' and ');
        const mixed = await count(
          `${name} t join ${key.references} r on ${on}`,
          `${organizationOf(name, 't')} is distinct from ${organizationOf(key.references, 'r')}`,
        );
        expect({ key: key.name, mixed }).toEqual({ key: key.name, mixed: 0 });
      }
  });
});
