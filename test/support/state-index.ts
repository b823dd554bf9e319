import { BytePace } from '../../src/shared/platform/slices/byte-pace.ts';
import { indexDue } from '../../src/workers/search/index-states.ts';
import { query } from './database.ts';
import type { TestStack } from './state.ts';
import type { TestApp } from './test-app.ts';

export interface TestResource {
  readonly name: string;
  readonly type?: string;
  readonly id?: string;
  readonly inputs?: object;
  readonly outputs?: object;
  readonly parent?: string | undefined;
  readonly provider?: string;
  readonly dependencies?: readonly string[];
  readonly protect?: boolean;
  readonly delete?: boolean;
  readonly modified?: string;
}

const defaultType = 'test:index:Bucket';

/** A deployment document with these resources. */
export function stateOf({ project, stack }: TestStack, resources: readonly TestResource[]) {
  const urn = (name: string, type = defaultType) => `urn:pulumi:${stack}::${project}::${type}::${name}`;
  const root = { urn: urn(`${project}-${stack}`, 'pulumi:pulumi:Stack'), custom: false, type: 'pulumi:pulumi:Stack' };
  const parentOf = (name: string | undefined) => (name === 'root' ? root.urn : name && urn(name));
  const written = resources.map(({ dependencies, name, parent, provider, type = defaultType, ...others }) => ({
    urn: urn(name, type),
    custom: true,
    type,
    ...others,
    ...(parent === undefined ? {} : { parent: parentOf(parent) }),
    ...(provider === undefined ? {} : { provider: `${urn(provider, 'pulumi:providers:test')}::p1` }),
    ...(dependencies === undefined ? {} : { dependencies: dependencies.map((each) => urn(each)) }),
  }));
  const hasRoot = resources.some(({ parent }) => parent === 'root');
  return {
    version: 3,
    deployment: {
      manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' },
      resources: hasRoot ? [root, ...written] : written,
    },
  };
}

export async function stackId(app: TestApp, stack: TestStack): Promise<string> {
  const row = await app.context.stacks.find(stack);
  if (!row) throw new Error('there is no such stack');
  return row.id;
}

/** Rows of the index, without the stack's root. */
export async function indexedRows(app: TestApp, stack: TestStack) {
  return query(
    app,
    `select * from stack_resources where stack_id = $1 and type <> 'pulumi:pulumi:Stack' order by key`,
    [await stackId(app, stack)],
  );
}

/** What the versions of a stack have changed, without its root. */
export async function indexedChanges(app: TestApp, stack: TestStack) {
  const rows = await query<{ version: number; urn: string; change: string; paths: string[] | null }>(
    app,
    `select version, urn, change, paths from resource_changes where stack_id = $1 and type <> 'pulumi:pulumi:Stack'`,
    [await stackId(app, stack)],
  );
  return rows
    .map(({ change, paths, urn, version }) => ({ version, name: urn.split('::').at(-1) as string, change, paths }))
    .sort((a, b) => a.version - b.version || (a.name < b.name ? -1 : 1));
}

/** Indexes what is due, also what earlier tests have left, which may come before the stacks of this one. */
export async function indexAll(app: TestApp): Promise<void> {
  const due = 'select 1 from state_index_due where claimed_until is null or claimed_until < clock_timestamp() limit 1';
  do await indexDue(app.context, { delaySeconds: 0, backlog: new BytePace(1e9) });
  while ((await query(app, due)).length > 0);
}
