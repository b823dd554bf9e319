import { setTimeout as sleep } from 'node:timers/promises';
import { largeState } from '../../testkit/large-state.ts';
import type { DataFolder } from './footprint.ts';
import type { RawClient } from './raw-client.ts';

/** How much the pages have to show. */
interface WebSizes {
  readonly stacks: number;
  readonly resources: number;
  readonly events: number;
}

/** With many resources, and an update with many events. */
interface SeededStack {
  readonly organization: string;
  readonly project: string;
  readonly stack: string;
  readonly updateId: string;
  readonly version: number;
  /** The path of a stack with as many resources, in components that depend on each other. */
  readonly graphed: string;
}

const organization = 'dev-org';
const ref = { organization, project: 'large', stack: 'prod' };
const indexingMs = 600_000;

/** Stacks with tags and an update each, and one stack that is large. */
export async function seedWeb(folder: DataFolder, client: RawClient, sizes: WebSizes): Promise<SeededStack> {
  await folder.query(
    `insert into projects (organization_id, name)
     select o.id, 'project-' || lpad(n::text, 3, '0') from generate_series(0, 99) n, organizations o where o.name = $1`,
    [organization],
  );
  // Triggers keep what lists read, as they do in a server.
  await folder.query(
    `insert into stacks (project_id, name, tags)
     select p.id, 'stack-' || lpad((n / 100)::text, 4, '0'),
       json_build_object('pulumi:project', p.name, 'pulumi:runtime', 'nodejs', 'team', 'team-' || n % 20, 'env', (array['dev', 'test', 'prod'])[n % 3 + 1])::text
     from generate_series(0, $1 - 1) n join projects p on p.name = 'project-' || lpad((n % 100)::text, 3, '0')`,
    [sizes.stacks],
  );
  await folder.query(
    `insert into updates (stack_id, kind, dry_run, exclusive, status, stack_version, message, environment, resource_changes, requested_by,
       created_at, started_at, ended_at, expires_at, epoch)
     select s.id, 'update', false, true, case when s.name like '%7' then 'failed' else 'succeeded' end, 1, 'A change',
       '{"git.head":"0123456789abcdef0123456789abcdef01234567","git.headName":"refs/heads/main"}', '{"update":2,"same":40}', u.id,
       now(), now(), now(), now(), 1
     from stacks s, users u where u.login = 'ada' and s.name like 'stack-%'`,
  );
  await folder.query(`update stacks set stack_version = 1 where name like 'stack-%'`);
  // They have no states, and the large one should not wait for them.
  await folder.query('delete from state_index_due');
  await folder.query('analyze');

  const path = await client.createStack(ref.organization, ref.project, ref.stack);
  const parent = 'urn:pulumi:prod::large::pulumi:pulumi:Stack::large-prod';
  const resources = Array.from({ length: sizes.resources }, (_, at) => ({
    ...{ urn: `urn:pulumi:prod::large::aws:s3/bucket:Bucket::bucket-${at}`, type: 'aws:s3/bucket:Bucket', parent },
    ...{ custom: true, id: `b-${at}`, inputs: { bucket: `b-${at}` }, outputs: { arn: `arn:aws:s3:::b-${at}` } },
  }));
  const root = {
    urn: parent,
    type: 'pulumi:pulumi:Stack',
    custom: false,
    outputs: { address: 'https://example.org/' },
  };
  const manifest = { time: '2026-01-01T00:00:00Z', magic: '', version: '' };
  const body = { version: 3, deployment: { manifest, resources: [root, ...resources] } };
  await client.call('POST', `${path}/import`, body, { gzip: true });
  const update = await client.startUpdate(path);
  await folder.query(
    `insert into engine_events (update_id, sequence, event, type, urn)
     select $1, n, json_build_object('sequence', n, 'timestamp', 1780000000 + n / 100, 'diagnosticEvent', json_build_object(
         'urn', 'urn:pulumi:prod::large::aws:s3/bucket:Bucket::bucket-' || n % 1000, 'message', 'Message ' || n || ' of the provider', 'severity', 'info',
         'color', 'raw'))::text,
       'diagnosticEvent', 'urn:pulumi:prod::large::aws:s3/bucket:Bucket::bucket-' || n % 1000
     from generate_series(0, $2 - 1) n`,
    [update.id, sizes.events],
  );
  await client.complete(update);
  const graphed = { project: 'graphed', stack: 'prod' };
  const graphedPath = await client.createStack(ref.organization, graphed.project, graphed.stack);
  const state = { version: 3, deployment: { manifest, resources: largeState(graphed, sizes.resources) } };
  await client.call('POST', `${graphedPath}/import`, state, { gzip: true });
  await untilIndexed(folder);
  const page = `/${ref.organization}/${graphed.project}/${graphed.stack}`;
  return { ...ref, updateId: update.id, version: update.version, graphed: page };
}

async function untilIndexed(folder: DataFolder): Promise<void> {
  for (const deadline = performance.now() + indexingMs; performance.now() < deadline; await sleep(1_000)) {
    const [row] = await folder.query('select count(*)::int as due from state_index_due');
    if (row?.['due'] === 0) return;
  }
  throw new Error('The states are not indexed in time');
}
