import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { createDatabase, ownDatabaseSettings } from './support/databases.ts';
import { loadAverage, percentile, printTable } from './support/measures.ts';
import { PlanLog } from './support/plan-log.ts';

/**
 * Searches over the resources of many stacks.
 * As a user who may read all of them, and with a deny of a part, which lets the database decide about each stack.
 * Usage: npm run bench search -- [--stacks 10000] [--resources 100] [--rounds 20]
 */
const { values } = parseArgs({
  options: {
    stacks: { type: 'string', default: '10000' },
    resources: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '20' },
  },
});
const [stacks, resources, rounds] = [values.stacks, values.resources, values.rounds].map(Number) as [
  number,
  number,
  number,
];
const note = (text: string): void => console.error(text);

/** Stacks and their index, as if workers had written it. Every 500th stack has a resource of a rare type, one has a rare name. */
async function seed(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const run = async (what: string, text: string, parameters: readonly unknown[] = []): Promise<void> => {
    const begun = performance.now();
    const { rowCount } = await client.query(text, [...parameters]);
    note(`${what}: ${rowCount ?? 0} rows in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  };
  try {
    await client.query(`set statement_timeout = 0`);
    await client.query(`set maintenance_work_mem = '256MB'`);
    await run('organization', `insert into organizations (name) values ('acme')`);
    await run(
      'memberships',
      `insert into memberships (organization_id, user_id, role)
       select o.id, u.id, 'admin' from organizations o, users u where o.name = 'acme' and u.login = 'ada'`,
    );
    await run(
      'projects',
      `insert into projects (organization_id, name)
       select o.id, 'project-' || lpad(n::text, 4, '0') from organizations o, generate_series(0, 199) n where o.name = 'acme'`,
    );
    await run(
      'stacks',
      `insert into stacks (project_id, name, tags, stack_version)
       select p.id, 'stack-' || lpad((n / 200)::text, 4, '0'), json_build_object('env', case when n % 10 = 0 then 'prod' else 'dev' end)::text, 1
       from generate_series(0, $1::int - 1) n join projects p on p.name = 'project-' || lpad((n % 200)::text, 4, '0')`,
      [stacks],
    );
    await client.query('set session_replication_role = replica');
    await run(
      'updates',
      `insert into updates (stack_id, kind, exclusive, status, stack_version, organization_id, expires_at, created_at, started_at, ended_at)
       select s.id, 'update', true, 'succeeded', 1, p.organization_id, now(), now() - interval '1 day', now() - interval '1 day',
         now() - make_interval(mins => (random() * 100000)::int)
       from stacks s join projects p on p.id = s.project_id`,
    );
    await run(
      'changes',
      'update stack_changes c set changed_at = u.ended_at from updates u where u.stack_id = c.stack_id',
    );
    await run(
      'indexes',
      `insert into state_indexes (stack_id, edition, version, is_ended, known_from, resource_count, indexed_at)
       select id, 1, 1, true, 0, $1, now() from stacks`,
      [resources],
    );
    await run(
      'resources',
      `with numbered as (select id, (row_number() over (order by id))::int as s from stacks)
       insert into stack_resources (stack_id, key, digest, urn, type, name, place, parent, provider, provider_version, dependencies,
         is_custom, is_external, is_protected, deletes_first, is_deleted)
       select n.id, 'key-' || lpad(r::text, 18, '0'), repeat('d', 22), 'urn:pulumi:stack::project::' || t.type || '::' || t.name, t.type, t.name,
         t.type || '::' || t.name, 'key-000000000000000002', case when r > 2 then 'key-000000000000000001' end,
         case when r = 1 then '' || (3 + n.s % 5) || '.' || (n.s % 40) || '.0' end, '{}', r > 1, false, (r + n.s) % 200 = 0, false, false
       from numbered n cross join generate_series(1, $1::int) r cross join lateral (
         select case when r = 1 then 'pulumi:providers:aws' when r = 2 then 'pulumi:pulumi:Stack'
             when n.s % 500 = 0 and r = 3 then 'aws:dynamodb/globalTable:GlobalTable'
             else (array['aws:s3/bucket:Bucket', 'aws:iam/role:Role', 'aws:iam/policy:Policy', 'aws:ec2/securityGroup:SecurityGroup',
               'aws:lambda/function:Function', 'aws:sqs/queue:Queue', 'aws:rds/instance:Instance', 'aws:cloudwatch/metricAlarm:MetricAlarm',
               'kubernetes:apps/v1:Deployment', 'kubernetes:core/v1:Service', 'random:index/randomId:RandomId'])[1 + (r * 7 + n.s) % 11] end as type,
           case when n.s = 4711 and r = 5 then 'needle-in-the-haystack'
             else (array['orders', 'billing', 'users', 'search', 'media', 'ledger'])[1 + (r + n.s) % 6] || '-'
               || (array['api', 'worker', 'db', 'cache', 'queue'])[1 + r % 5] || '-' || r end as name
       ) t`,
      [resources],
    );
    await client.query('set session_replication_role = origin');
    await client.query('vacuum analyze');
  } finally {
    await client.end();
  }
}

interface Call {
  readonly name: string;
  readonly procedure: string;
  readonly input: Record<string, unknown>;
}

const list = (query: string): Call => ({
  name: query === '' ? '(everything)' : query,
  procedure: 'search.list',
  input: { query },
});
const count = (query: string, by: string): Call => ({
  name: `count by ${by}: ${query || '(everything)'}`,
  procedure: 'search.count',
  input: { query, by },
});
const calls: readonly Call[] = [
  ...[
    '',
    'type:aws:dynamodb/globalTable:GlobalTable',
    'type:aws:dynamodb/*',
    'type:aws:rds/* -protect:true',
    'name:needle-in-the-haystack',
    'name:*haystack',
    'needle',
    'orders',
    'orders dynamodb',
    'protect:true type:aws:rds/*',
    'provider:aws version:<4',
    'provider:aws version:3.15.0',
    'stack:project-0042/*',
    'tag:env=prod type:kubernetes:*',
    'changed:<1h',
    'nothing-has-this-word',
    'name:nothing-has-this-name',
  ].map(list),
  count('type:aws:dynamodb/*', 'stack'),
  count('type:aws:rds/*', 'type'),
  count('orders', 'type'),
  count('', 'type'),
  { name: 'versions of providers', procedure: 'search.providers', input: {} },
];

const home = await mkdtemp(join(tmpdir(), 'holdfast-search-'));
const log = await PlanLog.start(join(home, 'postgres'));
try {
  const url = await createDatabase(log.postgres.url, 'search');
  await using server = await startOwnHoldfast(ownDatabaseSettings(url));
  await seed(url);
  const ask = async ({ input, procedure }: Call) => {
    const path = `${server.url}/trpc/${procedure}?input=${encodeURIComponent(JSON.stringify({ organization: 'acme', ...input }))}`;
    const response = await fetch(path, { headers: { authorization: `token ${server.token}` } });
    const { error, result } = (await response.json()) as { error?: { message: string }; result: { data: Found } };
    if (error) throw new Error(error.message);
    return result.data;
  };
  const measure = async (): Promise<void> => {
    const rows: (string | number)[][] = [];
    for (const call of calls) {
      const ms: number[] = [];
      let found = await ask(call);
      for (let round = 0; round < rounds; round++) {
        const begun = performance.now();
        found = await ask(call);
        ms.push(performance.now() - begun);
      }
      const statements = await log.during(() => ask(call));
      const read = statements.reduce((sum, statement) => sum + statement.read, 0);
      const pages = statements.reduce((sum, statement) => sum + statement.pages, 0);
      const results = found.items?.length ?? found.resources ?? 0;
      rows.push([
        call.name,
        percentile(ms, 0.5),
        percentile(ms, 0.99),
        String(results),
        found.isCut ? 'cut short' : 'exact',
        String(read),
        String(pages),
      ]);
      note(call.name);
    }
    printTable(['search', 'p50 ms', 'p99 ms', 'found', 'answer', 'rows read', 'pages'], rows);
  };
  console.log(
    `\n${stacks * resources} resources of ${stacks} stacks, all of which may be read, at load ${await loadAverage()}\n`,
  );
  await measure();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    `insert into grants (organization_id, effect, permissions, project_pattern, user_id)
     select o.id, 'deny', 127, 'project-00*', u.id from organizations o, users u where o.name = 'acme' and u.login = 'ada'`,
  );
  await client.end();
  console.log(`\nThe same with a deny of half of the stacks, at load ${await loadAverage()}\n`);
  await measure();
} finally {
  await log.postgres.stop();
  await rm(home, { recursive: true, force: true });
}

interface Found {
  readonly items?: readonly unknown[];
  readonly resources?: number;
  readonly isCut: boolean;
}
