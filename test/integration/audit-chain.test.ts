import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { operatorSource } from '../../src/shared/audit/audit-event.ts';
import { createAuditRepository, serverId } from '../../src/shared/audit/audit-repository.ts';
import { verifyAudit } from '../../src/shared/audit/verify-audit.ts';
import { addAuditPartitions, dropOldAudit } from '../../src/workers/audit/audit-retention.ts';
import { chainAudit, storeAuditHeads } from '../../src/workers/audit/chain-audit.ts';
import { exportAudit } from '../../src/workers/audit/export-audit.ts';
import { runAdminCommand } from '../support/admin.ts';
import { chainAll } from '../support/chain-all.ts';
import { query } from '../support/database.ts';
import { testApp } from '../support/test-app.ts';
import { until } from '../support/until.ts';

const app = testApp();
let organization: string;
let organizationId: string;
let round = 0;

beforeEach(async () => {
  organization = `audited${++round}`;
  organizationId = (await app.context.identity.ensureOrganization(organization)).id;
});

async function add(object: string, name: string | null = organization): Promise<void> {
  await createAuditRepository(app.context.db).insert(operatorSource('somebody'), {
    action: 'stack.tags',
    organization: name,
    object,
    details: { note: object },
  });
}

const chain = () => chainAll(app);

const problems = async () => (await verifyAudit(app.context, organizationId)).problems;
const numberOf = async (object: string): Promise<string> => {
  const rows = await query<{ number: string }>(
    app,
    'select number from audit_events where organization = $1 and object = $2',
    [organization, object],
  );
  return rows[0]?.number ?? '';
};
const batchesOf = () =>
  query<{ batch: string; numbers: string[] }>(
    app,
    'select batch, numbers from audit_batches where organization_id = $1 order by batch',
    [organizationId],
  );

describe('chaining', () => {
  test('puts every event into one batch, and what is intact has no problems', async () => {
    for (const object of ['a', 'b', 'c']) await add(object);
    await add('other', null);
    await chain();
    await add('d');
    await chain();
    await chain();
    expect((await batchesOf()).map(({ numbers }) => numbers.length)).toEqual([3, 1]);
    expect(await verifyAudit(app.context, organizationId)).toEqual({ chains: 1, events: 4, problems: [] });
    let [read, total] = [0, 0];
    const all = await verifyAudit(app.context, null, (...each) => {
      [read, total] = each;
    });
    expect(total).toBeGreaterThanOrEqual(3);
    expect(read).toBe(total);
    expect(all.problems).toEqual([]);
    expect(all.events).toBeGreaterThanOrEqual(5);
  });

  test('waits for transactions that may still add an event before those that are committed', async () => {
    const slow = new pg.Client({ connectionString: app.database.ownerUrl });
    await slow.connect();
    try {
      await slow.query('begin');
      await slow.query(
        `insert into audit_events (organization_id, organization, action, outcome, actor, login, token_name, sign_in, role, granted_by,
           address, user_agent, ci_run, object, request_id, details)
         values ($1, $2, 'stack.tags', 'done', 'server', '', '', '', '', '', '', '', '', 'slow', '', '{}')`,
        [organizationId, organization],
      );
      await add('fast');
      expect(await chainAudit(app.context)).toBe(false);
      expect(await batchesOf()).toEqual([]);
      const metrics = (await app.call('GET', '/metrics', { accept: null })).text;
      expect(metrics).toMatch(/^holdfast_audit_waiting_seconds\{step="chain"\} (?!0$)\d/m);
      await slow.query('commit');
      await chain();
      expect(await batchesOf()).toMatchObject([{ numbers: [await numberOf('slow'), await numberOf('fast')] }]);
    } finally {
      await slow.end();
    }
  });

  test('waits for the sessions that the runbook finds, and not for a backup', async () => {
    const runbook = readFileSync(path.join(import.meta.dirname, '../../docs/runbook.md'), 'utf8');
    const [, statement = ''] = /^### HoldfastAuditNotChained$[^#]*?`(select pid[^`]*)`/m.exec(runbook) ?? [];
    const [backup, writer] = [0, 1].map(() => new pg.Client({ connectionString: app.database.ownerUrl })) as [
      pg.Client,
      pg.Client,
    ];
    await Promise.all([backup.connect(), writer.connect()]);
    try {
      await backup.query('begin isolation level repeatable read, read only');
      await backup.query('select from audit_events');
      await add('meanwhile');
      await chain();
      await writer.query('begin');
      await writer.query('select pg_current_xact_id()');
      const pidOf = async (client: pg.Client) =>
        (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows[0]?.pid;
      // Sessions of other databases count, too.
      const found = (await query<{ pid: number }>(app, statement)).map(({ pid }) => pid);
      expect(found).toContain(await pidOf(writer));
      expect(found).not.toContain(await pidOf(backup));
      await add('late');
      expect(await chainAudit(app.context)).toBe(false);
    } finally {
      await Promise.all([backup.end(), writer.end()]);
    }
    await chain();
  });

  test('misses nothing while many transactions of different length add events and replicas chain them', async () => {
    const stop = new AbortController();
    const chaining = [1, 2].map(async () => {
      while (!stop.signal.aborted) await chainAudit(app.context);
    });
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      const client = new pg.Client({ connectionString: app.database.ownerUrl });
      await client.connect();
      try {
        for (let turn = 0; turn < 12; turn++) {
          await client.query('begin');
          if (writer % 2) await client.query('select pg_current_xact_id()');
          for (let event = 0; event < 1 + (turn % 3); event++)
            await client.query(
              `insert into audit_events (organization_id, organization, action, outcome, actor, login, token_name, sign_in, role,
                 granted_by, address, user_agent, ci_run, object, request_id, details)
               values ($1, $2, 'stack.tags', 'done', 'server', '', '', '', '', '', '', '', '', $3, '', '{}')`,
              [organizationId, organization, `${writer}-${turn}-${event}`],
            );
          await client.query('select pg_sleep($1)', [((writer * 7 + turn * 3) % 5) / 100]);
          await client.query(turn % 4 === 3 ? 'rollback' : 'commit');
        }
      } finally {
        await client.end();
      }
    });
    await Promise.all(writers);
    stop.abort();
    await Promise.all(chaining);
    await chain();
    const chained = (await batchesOf()).flatMap(({ numbers }) => numbers);
    const events = await query<{ number: string }>(
      app,
      'select number from audit_events where organization_id = $1 order by number',
      [organizationId],
    );
    expect(chained).toEqual(events.map(({ number }) => number));
    expect(chained.length).toBeGreaterThan(50);
    expect(await problems()).toEqual([]);
  });

  test('goes on when the database was restored into a server with lower transaction ids', async () => {
    await add('before');
    await chain();
    await query(app, `update audit_chaining set horizon_through = horizon_through + 1, horizon_xid = '99999999999'`);
    await add('after');
    await chain();
    expect(await problems()).toEqual([]);
    expect((await batchesOf()).length).toBe(2);
  });

  describe('after months of the future were dropped, because the clock was ahead', () => {
    beforeEach(() => query(app, `update audit_chaining set dropped_before = '2099-01-01'`));
    afterEach(() => query(app, `update audit_chaining set dropped_before = '0001-01-01'`));

    const addOfLastMonth = async () => {
      await add('late');
      await query(
        app,
        `update audit_events set occurred_at = date_trunc('month', now() at time zone 'UTC') at time zone 'UTC' - interval '1 second'
         where organization = $1`,
        [organization],
      );
    };

    test('goes on, also with the last events of a month that is over by then', async () => {
      await addOfLastMonth();
      await add('present');
      await chain();
      expect((await batchesOf()).map(({ numbers }) => numbers.length)).toEqual([1, 1]);
      await add('next');
      await chain();
      expect((await batchesOf()).length).toBe(3);
    });

    test('also once that month has begun', async () => {
      await addOfLastMonth();
      await chain();
      await query(app, `update audit_chaining set dropped_before = date_trunc('month', now() at time zone 'UTC')`);
      await addOfLastMonth();
      await chain();
      expect((await batchesOf()).map(({ numbers }) => numbers.length)).toEqual([1, 1]);
      expect(await problems()).toEqual([]);
    });

    test('verification finds what was changed since', async () => {
      await addOfLastMonth();
      await chain();
      const text = 'events before 2099-01-01 were dropped, but this month is in the future';
      expect(await problems()).toEqual([{ organizationId: serverId, kind: 'chain', text }]);
      const change = `update audit_events set login = login || 'x' where organization = $1`;
      await query(app, change, [organization]);
      expect(await problems()).toContainEqual({ organizationId, kind: 'changed', text: expect.anything() });
      // The month begins, and retention has not dropped the one before yet.
      await query(app, `update audit_chaining set dropped_before = date_trunc('month', now() at time zone 'UTC')`);
      expect(await problems()).toEqual([{ organizationId, kind: 'changed', text: expect.anything() }]);
    });
  });

  test.each(['audit_batches', 'audit_chains', 'audit_chaining'])(
    'that fails when it writes %s changes nothing, and the next run does it',
    async (table) => {
      for (const object of ['a', 'b']) await add(object);
      const event = table === 'audit_batches' ? 'insert' : 'update';
      const when = table === 'audit_chaining' ? 'when (old.chained_through <> new.chained_through)' : '';
      await query(
        app,
        `create function fail() returns trigger language plpgsql as $$ begin raise exception 'killed'; end $$`,
      );
      await query(app, `create trigger fail before ${event} on ${table} for each row ${when} execute function fail()`);
      await expect(chain()).rejects.toThrow();
      expect(await batchesOf()).toEqual([]);
      await query(app, 'drop function fail cascade');
      await chain();
      expect((await batchesOf()).map(({ numbers }) => numbers.length)).toEqual([2]);
      expect(await problems()).toEqual([]);
    },
  );

  test('stores the head of each chain, again if it was killed before it noted that', async () => {
    await add('a');
    await chain();
    expect(await storeAuditHeads(app.context)).toBeGreaterThan(0);
    await query(app, 'update audit_chains set stored_batch = 0 where organization_id = $1', [organizationId]);
    expect(await storeAuditHeads(app.context)).toBe(1);
    expect(await storeAuditHeads(app.context)).toBe(0);
    const { blobs } = await app.context.blobs.list(`audit/heads/${organizationId}/`);
    expect(blobs.length).toBe(1);
  });
});

describe('verification finds', () => {
  beforeEach(async () => {
    for (const object of ['a', 'b', 'c']) await add(object);
    await chain();
    for (const object of ['d', 'e']) await add(object);
    await chain();
    await storeAuditHeads(app.context);
    expect(await problems()).toEqual([]);
  });

  const changes: [string, string, string, RegExp][] = [
    [
      'a changed event',
      `update audit_events set login = 'else' where number = $b`,
      'changed',
      /event \d+ .*was changed/,
    ],
    [
      'a changed time',
      `update audit_events set occurred_at = occurred_at + interval '1 microsecond' where number = $b`,
      'changed',
      /./,
    ],
    ['a removed event', 'delete from audit_events where number = $b', 'missing', /event \d+ of batch 1 is missing/],
    [
      'an inserted event',
      `insert into audit_events select (jsonb_populate_record(e, jsonb_build_object('occurred_at', occurred_at + interval '1 second'))).*
       from audit_events e where number = $b`,
      'inserted',
      /was inserted/,
    ],
    [
      'a removed batch at the end',
      `with gone as (delete from audit_batches where organization_id = $o and batch = 2 returning through_number),
         events as (delete from audit_events where number in ($d, $e))
       update audit_chains set batch = 1, stored_batch = 1,
         hash = (select hash from audit_batches where organization_id = $o and batch = 1) where organization_id = $o`,
      'head',
      /ends at batch 1, but the blob store has the hash of batch 2/,
    ],
    [
      'a removed batch',
      'delete from audit_batches where organization_id = $o and batch = 1',
      'chain',
      /batch 2 comes after batch 0/,
    ],
    [
      'a batch that was changed with its event',
      `update audit_batches set event_hashes = set_byte(event_hashes, 0, 255 - get_byte(event_hashes, 0)) where organization_id = $o and batch = 1`,
      'chain',
      /batch 1 was changed/,
    ],
    [
      'a removed chain',
      `with events as (delete from audit_events where organization_id = $o),
         batches as (delete from audit_batches where organization_id = $o)
       delete from audit_chains where organization_id = $o`,
      'head',
      /^the chain is missing, but the blob store has the hash of batch 2$/,
    ],
    [
      'a chain that begins later, without retention',
      `with events as (delete from audit_events where organization_id = $o),
         batches as (delete from audit_batches where organization_id = $o)
       update audit_chains set base_batch = batch, base_hash = hash where organization_id = $o`,
      'chain',
      /^batches 1 to 2 are missing, but retention has dropped nothing$/,
    ],
    [
      'a dropped month that is not over',
      `with events as (delete from audit_events where organization_id = $o)
       update audit_chaining set dropped_before = '2099-01-01'`,
      'missing',
      /^event \d+ of batch 1 is missing$/,
    ],
  ];
  afterEach(() => query(app, `update audit_chaining set dropped_before = '0001-01-01'`));

  test('a chain that begins later than retention has made it, and a month in the future that was dropped', async () => {
    await add('f');
    await chain();
    await storeAuditHeads(app.context);
    await query(app, `update audit_chaining set dropped_before = '2020-01-01'`);
    await query(app, 'update audit_chains set base_batch = batch, base_hash = hash where organization_id = $1', [
      organizationId,
    ]);
    // Retention has not deleted them yet.
    expect(await problems()).toEqual([]);
    await query(app, 'delete from audit_batches where organization_id = $1', [organizationId]);
    await query(app, 'delete from audit_events where organization_id = $1', [organizationId]);
    const text = 'the blob store has the hash of batch 2, which retention has not dropped';
    expect(await problems()).toEqual([{ organizationId, kind: 'head', text }]);
    await query(app, `update audit_chaining set dropped_before = '2099-01-01'`);
    expect(await problems()).toContainEqual({
      organizationId: serverId,
      kind: 'chain',
      text: 'events before 2099-01-01 were dropped, but this month is in the future',
    });
  });

  test('heads that the blob store has lost', async () => {
    const { blobs } = app.context;
    for (const { key } of (await blobs.list(`audit/heads/${organizationId}/`)).blobs) await blobs.delete(key);
    const text = 'the blob store has lost the hash of batch 2';
    expect(await problems()).toEqual([{ organizationId, kind: 'head', text }]);
  });

  test.each(changes)('%s', async (_, statement, kind, text) => {
    let sql = statement.replaceAll('$o', `'${organizationId}'`);
    for (const object of ['b', 'd', 'e']) sql = sql.replaceAll(`$${object}`, await numberOf(object));
    await query(app, sql);
    expect(await problems()).toContainEqual({ organizationId, kind, text: expect.stringMatching(text) });
  });

  test('two events that were exchanged', async () => {
    const [a, b] = [await numberOf('a'), await numberOf('b')];
    await query(app, `update audit_events set number = number + 1000000 where number = ${a}`);
    await query(app, `update audit_events set number = ${a} where number = ${b}`);
    await query(app, `update audit_events set number = ${b} where number = ${a} + 1000000`);
    expect((await problems()).map(({ kind }) => kind)).toEqual(['reordered', 'reordered']);
  });

  test('nothing for an organization that nobody has touched, and the command says what it found', async () => {
    await query(app, `update audit_events set object = 'x' where number = ${await numberOf('c')}`);
    const bad = await runAdminCommand(app, 'audit', 'verify', '--organization', organization);
    expect(bad).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/was changed after it was chained in batch 1/),
    });
    const intact = `${organization}-intact`;
    await app.context.identity.ensureOrganization(intact);
    await add('a', intact);
    await chain();
    const good = await runAdminCommand(app, 'audit', 'verify', '--organization', intact);
    expect(good).toMatchObject({ code: 0, stdout: expect.stringContaining('Checked 1 chained events in 1 chain.') });
  });
});

describe('the export', () => {
  const keysOf = async (batch: number): Promise<string[]> => {
    const prefix = `audit/events/${organizationId}/${new Date().toISOString().slice(0, 7)}/`;
    const { blobs } = await app.context.blobs.list(prefix);
    return blobs.map(({ key }) => key).filter((key) => key.startsWith(`${prefix}${String(batch).padStart(12, '0')}`));
  };
  const read = async (batch: number): Promise<Record<string, unknown>[]> => {
    const [key = ''] = await keysOf(batch);
    const bytes = Buffer.concat(await Array.fromAsync(await app.context.blobs.open(key)));
    return bytes
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  };

  test('has each chained batch as JSON lines, and writes the same again when it was killed halfway', async () => {
    for (const object of ['a', 'b']) await add(object);
    await chain();
    await exportAudit(app.context);
    await add('c');
    await chain();
    expect(await exportAudit(app.context)).toBe(1);
    expect(await exportAudit(app.context)).toBe(0);
    expect((await read(1)).map(({ object }) => object)).toEqual(['a', 'b']);
    const [line] = await read(2);
    expect(line).toMatchObject({ object: 'c', event: 'stack.tags', user: 'operator:somebody', details: { note: 'c' } });
    await query(app, 'update audit_chains set exported_batch = 1 where organization_id = $1', [organizationId]);
    expect(await exportAudit(app.context)).toBe(1);
    expect(await read(2)).toEqual([line]);
  });

  test('waits for a store that is away', async () => {
    await add('a');
    await chain();
    const { blobs } = app.context;
    const away = new Proxy(blobs, {
      get: (_, name: keyof typeof blobs) =>
        name === 'put' ? () => Promise.reject(new Error('away')) : blobs[name]?.bind(blobs),
    });
    await expect(exportAudit({ ...app.context, blobs: away })).rejects.toThrow('away');
    expect(await exportAudit(app.context)).toBe(1);
  });

  test('of a database that was restored keeps the events that came after the restored point', async () => {
    await add('lost');
    await chain();
    await exportAudit(app.context);
    const lost = await keysOf(1);
    for (const statement of [
      'delete from audit_events where organization_id = $1',
      'delete from audit_batches where organization_id = $1',
      'update audit_chains set batch = 0, hash = base_hash, exported_batch = 0 where organization_id = $1',
    ])
      await query(app, statement, [organizationId]);
    await add('next');
    await chain();
    await exportAudit(app.context);
    const keys = await keysOf(1);
    expect(keys).toHaveLength(2);
    expect(keys).toEqual(expect.arrayContaining(lost));
  });

  test('waits, and heads do, while a restored database may send nothing', async () => {
    await exportAudit(app.context);
    await storeAuditHeads(app.context);
    await add('a');
    await chain();
    await query(app, 'update installation set outgoing_held_since = now()');
    try {
      expect([await exportAudit(app.context), await storeAuditHeads(app.context)]).toEqual([0, 0]);
    } finally {
      await query(app, 'update installation set outgoing_held_since = null');
    }
    expect([await exportAudit(app.context), await storeAuditHeads(app.context)]).toEqual([1, 1]);
  });

  test('takes turns among organizations, however many batches one of them has', async () => {
    const other = await app.context.identity.ensureOrganization(`${organization}-other`);
    const [low, high] = [organizationId, other.id].toSorted() as [string, string];
    const copyBatches = (id: string, from: number, to: number) =>
      query(
        app,
        `insert into audit_batches (organization_id, batch, month, through_number, numbers, event_hashes, previous_hash, hash)
         select $1, batch, '2026-01-01', 0, '{}', '', '', decode(repeat('00', 32), 'hex') from generate_series($2::int, $3::int) batch`,
        [id, from, to],
      );
    const setChain = (id: string, batch: number) =>
      query(
        app,
        `insert into audit_chains (organization_id, batch, hash, base_hash) values ($1, $2, '', '')
         on conflict (organization_id) do update set batch = $2`,
        [id, batch],
      );
    await copyBatches(low, 1, 60);
    await copyBatches(high, 1, 1);
    await setChain(low, 60);
    await setChain(high, 1);
    const { blobs } = app.context;
    const order: string[] = [];
    const busy = new Proxy(blobs, {
      get: (_, name: keyof typeof blobs) =>
        name !== 'put'
          ? blobs[name]?.bind(blobs)
          : async (...args: Parameters<typeof blobs.put>) => {
              order.push(args[0].includes(low) ? 'low' : 'high');
              if (order.length === 40) {
                await copyBatches(low, 61, 120);
                await setChain(low, 120);
              }
              return blobs.put(...args);
            },
    });
    expect(await exportAudit({ ...app.context, blobs: busy })).toBe(121);
    expect(order.indexOf('high')).toBeLessThanOrEqual(50);
    for (const table of ['audit_batches', 'audit_chains'])
      await query(app, `delete from ${table} where organization_id in ($1, $2)`, [low, high]);
  });
});

test('retention drops whole months that are chained, and the rest stays verifiable', async () => {
  const { config } = app.context;
  const audit = { ...config.audit, retentionDays: 45, isExported: true };
  const context = { ...app.context, config: { ...config, audit } };
  for (const object of ['old', 'new']) await add(object);
  await query(
    app,
    `select add_audit_partition((date_trunc('month', now() at time zone 'UTC') - interval '4 months')::date)`,
  );
  const age = `update audit_events set occurred_at = occurred_at - interval '4 months' where organization = $1 and object = 'old'`;
  await query(app, age, [organization]);
  // Not chained yet.
  expect(await dropOldAudit(context)).toBe(0);
  await chain();
  await add('newer');
  await chain();
  await storeAuditHeads(app.context);
  // Not exported yet.
  expect(await dropOldAudit(context)).toBe(0);
  await exportAudit(app.context);
  expect(await dropOldAudit(context)).toBe(1);
  expect((await query(app, 'select object from audit_events where organization = $1', [organization])).length).toBe(2);
  expect((await batchesOf()).map(({ batch }) => batch)).toEqual(['2', '3']);
  expect(await problems()).toEqual([]);
  await query(app, `update audit_events set login = 'else' where number = ${await numberOf('new')}`);
  expect(await problems()).toMatchObject([{ kind: 'changed' }]);
});

test('verification finds nothing if retention drops a month meanwhile', async () => {
  const { config } = app.context;
  const context = { ...app.context, config: { ...config, audit: { ...config.audit, retentionDays: 45 } } };
  await add('old');
  for (const statement of [
    `select add_audit_partition((date_trunc('month', now() at time zone 'UTC') - interval '3 months')::date)`,
    // Other tests have dropped months.
    `update audit_chaining set dropped_before = (now() - interval '1 year')::date`,
  ])
    await query(app, statement);
  const age = `update audit_events set occurred_at = occurred_at - interval '3 months' where organization = $1`;
  await query(app, age, [organization]);
  await chain();
  await add('new');
  await chain();
  let dropped = 0;
  const { db } = app.context;
  const busy = new Proxy(db, {
    get: (_, name: keyof typeof db) => {
      if (name !== 'any') return typeof db[name] === 'function' ? (db[name] as () => unknown).bind(db) : db[name];
      return async (statement: Parameters<typeof db.any>[0]) => {
        if (dropped === 0 && statement.sql.includes('auditChaining.listBatches')) dropped = await dropOldAudit(context);
        return db.any(statement);
      };
    },
  });
  const { events, problems: found } = await verifyAudit({ blobs: app.context.blobs, db: busy }, organizationId);
  expect({ dropped, events, found }).toEqual({ dropped: 1, events: 1, found: [] });
  await query(app, `update audit_events set login = 'else' where organization = $1`, [organization]);
  expect(await problems()).toMatchObject([{ kind: 'changed' }]);
});

test('events do not wait while retention cannot drop a month that a backup reads', async () => {
  const { config } = app.context;
  const context = { ...app.context, config: { ...config, audit: { ...config.audit, retentionDays: 45 } } };
  await query(
    app,
    `select add_audit_partition((date_trunc('month', now() at time zone 'UTC') - interval '5 months')::date)`,
  );
  await chain();
  const [backup, writer] = [0, 1].map(() => new pg.Client({ connectionString: app.database.ownerUrl })) as [
    pg.Client,
    pg.Client,
  ];
  await Promise.all([backup.connect(), writer.connect()]);
  try {
    await backup.query('begin');
    await backup.query('select count(*) from audit_events');
    const dropping = dropOldAudit(context);
    dropping.catch(() => {});
    // It would wait for the retention that waits for the backup. An attempt of the retention waits 1 ms, longer on a very busy machine.
    await writer.query(`set lock_timeout = '700ms'`);
    const insert = () =>
      writer.query(
        `insert into audit_events (organization_id, organization, action, outcome, actor, login, token_name, sign_in, role, granted_by,
         address, user_agent, ci_run, object, request_id, details)
       values ($1, $2, 'stack.tags', 'done', 'server', '', '', '', '', '', '', '', '', 'meanwhile', '', '{}')`,
        [organizationId, organization],
      );
    // An attempt has let go of its locks.
    const isPausing = `select 1 from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'
      and query like '%drop_audit_months%' and pid <> pg_backend_pid()`;
    await until(async () => {
      await insert().catch(insert);
      return (await query(app, isPausing)).length > 0;
    }, 'the month cannot be dropped');
    await insert().catch(insert);
    await backup.query('rollback');
    // On a very busy machine, it has given up meanwhile.
    expect(await dropping.catch(() => dropOldAudit(context))).toBe(1);
  } finally {
    await Promise.all([backup.end(), writer.end()]);
  }
});

test('while retention deletes dropped batches, events can be added, and the chain is verifiable', async () => {
  const { config } = app.context;
  const context = { ...app.context, config: { ...config, audit: { ...config.audit, retentionDays: 45 } } };
  for (const object of ['old', 'new']) {
    await add(object);
    await chain();
  }
  await storeAuditHeads(app.context);
  await query(
    app,
    `select add_audit_partition((date_trunc('month', now() at time zone 'UTC') - interval '4 months')::date)`,
  );
  await query(app, 'delete from audit_events where organization = $1 and object = $2', [organization, 'old']);
  const month = `date_trunc('month', now() at time zone 'UTC' - interval '4 months')::date`;
  await query(app, `update audit_batches set month = ${month} where organization_id = $1 and batch = 1`, [
    organizationId,
  ]);
  const [holder, writer] = [0, 1].map(() => new pg.Client({ connectionString: app.database.ownerUrl })) as [
    pg.Client,
    pg.Client,
  ];
  await Promise.all([holder.connect(), writer.connect()]);
  try {
    await holder.query('begin');
    await holder.query('select 1 from audit_batches where organization_id = $1 and batch = 1 for update', [
      organizationId,
    ]);
    const dropping = dropOldAudit(context);
    const isWaiting = `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      and query like '%delete from audit_batches%' and pid <> pg_backend_pid()`;
    await until(async () => (await query(app, isWaiting)).length > 0, 'the batch is to be deleted');
    await writer.query(`set lock_timeout = '60s'`);
    await writer.query(
      `insert into audit_events (organization_id, organization, action, outcome, actor, login, token_name, sign_in, role, granted_by,
         address, user_agent, ci_run, object, request_id, details)
       values ($1, $2, 'stack.tags', 'done', 'server', '', '', '', '', '', '', '', '', 'meanwhile', '', '{}')`,
      [organizationId, organization],
    );
    expect((await batchesOf()).map(({ batch }) => batch)).toEqual(['1', '2']);
    expect(await problems()).toEqual([]);
    await holder.query('rollback');
    expect(await dropping).toBe(1);
  } finally {
    await Promise.all([holder.end(), writer.end()]);
  }
  expect((await batchesOf()).map(({ batch }) => batch)).toEqual(['2']);
});

test('partitions of the next months are added, and existing ones left alone', async () => {
  await query(
    app,
    `do $$ begin execute 'drop table if exists audit_events_' || to_char(now() at time zone 'UTC' + interval '2 months', 'YYYY_MM'); end $$`,
  );
  expect(await addAuditPartitions(app.context)).toBe(1);
  expect(await addAuditPartitions(app.context)).toBe(0);
});
