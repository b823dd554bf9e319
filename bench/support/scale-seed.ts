import pg from 'pg';

/** How much to seed. */
export interface ScaleSizes {
  readonly organizations: number;
  readonly projects: number;
  readonly stacks: number;
  readonly updates: number;
  readonly checkpoints: number;
  readonly events: number;
  readonly entries: number;
  /** Running updates. */
  readonly running: number;
  /** Updates of one stack, the deep one, and of another that is deleted. */
  readonly deep: number;
  /** Without most of the tags that the CLI sets, and without a vacuum. */
  readonly isLean?: boolean;
}

/** Names that the calls use. The organization has its share of the projects and stacks. */
export const seeded = {
  organization: 'scale-0',
  deep: 'deep',
  doomed: 'doomed',
} as const;

const environment = JSON.stringify({
  'git.head': '0123456789abcdef0123456789abcdef01234567',
  'git.headName': 'refs/heads/main',
  'git.author': 'somebody',
  'git.author.email': 'somebody@example.org',
  'github.login': 'somebody',
  'pulumi.version': 'v3.255.0',
  'pulumi.flag.parallel': '16',
  'pulumi.env.CI': 'true',
  'exec.kind': 'cli',
  stack: 'x'.repeat(120),
});

/**
 * Fills a migrated database. Stacks have the tags that the CLI sets and three more: `team` (20 values), `common` (all
 * the same) and `rare` (on every thousandth stack). One update in five is a preview. Checkpoints are inline or in a blob by turns.
 */
export async function seed(url: string, sizes: ScaleSizes, login: string, note: (text: string) => void): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const run = async (what: string, sql: string, values: readonly unknown[] = []): Promise<void> => {
    const begun = performance.now();
    const { rowCount } = await client.query(sql, [...values]);
    note(`${what}: ${rowCount ?? 0} rows in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  };
  const { organizations, projects, stacks, updates, deep } = sizes;
  const cliTags = sizes.isLean
    ? ''
    : `'pulumi:project', p.name, 'pulumi:runtime', 'nodejs', 'pulumi:description', 'An application', 'gitHub:owner', 'somebody', 'gitHub:repo', 'infrastructure',
       'vcs:kind', 'github.com', 'vcs:owner', 'somebody', `;
  try {
    await client.query(`set statement_timeout = 0`);
    await client.query(`set maintenance_work_mem = '256MB'`);
    await client.query(`set work_mem = '256MB'`);
    await run(
      'organizations',
      `insert into organizations (name) select 'scale-' || n from generate_series(0, $1 - 1) n`,
      [organizations],
    );
    await run(
      'projects',
      `insert into projects (organization_id, name)
       select o.id, 'project-' || lpad((n / $2)::text, 5, '0') from generate_series(0, $1 - 1) n
       join organizations o on o.name = 'scale-' || n % $2`,
      [projects, organizations],
    );
    await run(
      'memberships',
      `insert into memberships (organization_id, user_id, role)
       select o.id, u.id, 'admin' from organizations o, users u where u.login = $1 and o.name like 'scale-%'`,
      [login],
    );
    // Triggers and foreign keys hold by construction.
    await client.query('set session_replication_role = replica');
    await run(
      'stacks',
      `insert into stacks (project_id, name, tags, stack_version)
       select p.id, 'stack-' || lpad((n / $2)::text, 5, '0'),
         json_build_object(${cliTags}'team', 'team-' || n % 20, 'common', 'yes', case when n % 1000 = 0 then 'rare' else 'pulumi:template' end, 'x')::text, 1
       from generate_series(0, $1 - 1) n
       join (select id, name, row_number() over (order by id) - 1 as at from projects) p on p.at = n % $2`,
      [stacks, projects],
    );
    await run(
      'deep stacks',
      `insert into stacks (project_id, name) select p.id, n.name from unnest($2::text[]) as n (name), projects p
       join organizations o on o.id = p.organization_id where o.name = $1 and p.name = 'project-00000'`,
      [seeded.organization, [seeded.deep, seeded.doomed]],
    );
    await client.query(
      `create temporary table seed_stacks as select s.id, p.organization_id, row_number() over (order by s.id) - 1 as at
       from stacks s join projects p on p.id = s.project_id`,
    );
    await client.query('create unique index on seed_stacks (at)');
    await run(
      'listings',
      `insert into stack_listings (organization_id, tag_name, project_name, stack_name, tag_value, stack_id)
       select p.organization_id, t.tag_name, p.name, s.name, t.tag_value, s.id
       from stacks s join projects p on p.id = s.project_id cross join lateral (
         select '' as tag_name, '' as tag_value union all select key, value from json_each_text(s.tags::json)) t
       order by p.organization_id, t.tag_name collate "C", p.name, s.name`,
    );
    await run(
      'numbers of stacks',
      `insert into stack_counts (organization_id, stacks, is_sum)
       select p.organization_id, count(*), true from stacks s join projects p on p.id = s.project_id group by 1`,
    );
    await client.query('analyze stacks, seed_stacks');
    const insertUpdates = (source: string): string =>
      `insert into updates (stack_id, organization_id, kind, dry_run, exclusive, status, stack_version, message, environment, requested_by,
         created_at, started_at, ended_at, expires_at, epoch, events_archived)
       select s.id, s.organization_id, case when n % 5 = 4 then 'preview' else 'update' end, n % 5 = 4, n % 5 <> 4, 'succeeded',
         case when n % 5 <> 4 then s.version end, 'Change ' || n, '${environment}', u.id,
         now() - interval '1 year' + n * interval '1 second', now(), now(), now(), 1, ${sizes.events === 0}
       from (${source}) s, users u where u.login = '${login}'`;
    await run(
      'updates',
      insertUpdates(
        `select n, s.id, s.organization_id, n / c.total + 1 as version from generate_series(0, ${updates} - 1) n
         cross join (select count(*)::integer as total from seed_stacks) c join seed_stacks s on s.at = n % c.total`,
      ),
    );
    for (const name of [seeded.deep, seeded.doomed])
      await run(
        `updates of ${name}`,
        insertUpdates(
          `select n, s.id, p.organization_id, n + 1000000 as version from generate_series(0, ${deep} - 1) n,
             stacks s join projects p on p.id = s.project_id where s.name = '${name}'`,
        ),
      );
    await insertCheckpoints(run, sizes);
    await run(
      'heads',
      `update stacks s set checkpoint_id = c.id, resource_count = c.resource_count, last_kind = 'update', last_status = 'succeeded',
         last_started_at = now()
       from (select distinct on (stack_id) stack_id, id, resource_count from checkpoints where update_id is not null) c
       where c.stack_id = s.id`,
    );
    await run(
      'running updates',
      `insert into updates (stack_id, kind, exclusive, status, environment, expires_at, must_end_at, epoch, lease_hash, journal_version,
         organization_id)
       select s.id, 'update', true, 'running', '${environment}', now() + interval '5 minutes', now() + interval '1 day', 1,
         sha256(s.id::text::bytea), 1, s.organization_id
       from seed_stacks s where at >= 100 order by at limit $1`,
      [sizes.running],
    );
    await run(
      'journals of running updates',
      `insert into journals (update_id, stack_id, entry_count) select id, stack_id, 2 from updates where status = 'running'`,
    );
    const ended = `select id from updates where status = 'succeeded' order by id`;
    await run(
      'engine events',
      `insert into engine_events (update_id, sequence, event, type)
       select u.id, n, '{"sequence":' || n || ',"timestamp":1,"stdoutEvent":{"message":"${'x'.repeat(120)}","color":"raw"}}', 'stdoutEvent'
       from (${ended} limit ${Math.ceil(sizes.events / 100)}) u, generate_series(1, 100) n`,
    );
    await run(
      'journal entries',
      `insert into journal_entries (update_id, sequence_id, entry)
       select u.id, n, '{"sequenceID":' || n || ',"kind":0,"state":"${'x'.repeat(300)}"}'
       from (${ended} limit ${Math.ceil(sizes.entries / 100)}) u, generate_series(1, 100) n`,
    );
    await client.query('set session_replication_role = origin');
    await client.query(sizes.isLean ? 'analyze' : 'vacuum (analyze)');
  } finally {
    await client.end();
  }
}

async function insertCheckpoints(
  run: (what: string, sql: string, values?: readonly unknown[]) => Promise<void>,
  { checkpoints, updates }: ScaleSizes,
): Promise<void> {
  const columns = 'stack_id, update_id, sha256, size_bytes, stored_bytes, codec, resource_count, encode_at';
  const values = `u.stack_id, u.id, sha256(u.id::text::bytea), 20000, 400, 'zstd', 12, null::timestamptz`;
  // One or more for each update that is not a preview; in reality there are more than one in its course only.
  const source = `(select *, row_number() over () as at from updates where not dry_run) u
    cross join generate_series(1, ${Math.max(1, Math.round(checkpoints / Math.max(1, updates * 0.8)))}) g`;
  await run(
    'inline checkpoints',
    `insert into checkpoints (${columns}, inline_bytes) select ${values}, convert_to(repeat('x', 400), 'UTF8') from ${source} where u.at % 2 = 0`,
  );
  await run(
    'blobs',
    `insert into blobs (key, stored_bytes, unreferenced_since)
     select 'checkpoints/' || substr(md5(u.id::text), 1, 2) || '/' || u.id || '-' || g, 400, null from ${source} where u.at % 2 = 1`,
  );
  await run(
    'checkpoints in blobs',
    `insert into checkpoints (${columns}, blob_key)
     select ${values}, 'checkpoints/' || substr(md5(u.id::text), 1, 2) || '/' || u.id || '-' || g from ${source} where u.at % 2 = 1`,
  );
}
