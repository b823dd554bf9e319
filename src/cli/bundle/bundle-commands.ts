import type { Command } from 'commander';
import { type BundleSettings, bundleOf, pathOf } from '../../shared/bundle/bundle-location.ts';
import { type BundledRow, createBundleRepository } from '../../shared/bundle/bundle-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import { type FolderStack, listFolder, TransferError } from '../../shared/diy/diy-layout.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { bucketDefaults, openFolder } from '../../shared/platform/blobs/open-folder.ts';
import { SubFolder } from '../../shared/platform/blobs/sub-folder.ts';
import { AdminSession } from '../admin/admin-session.ts';
import type { CommandRun } from '../command-run.ts';
import { assertWritable } from '../moving/assert-writable.ts';
import { assertAllMatch, isSelected, messageOf } from '../moving/import-plan.ts';
import { StackImporter } from '../moving/stack-importer.ts';
import { collect } from '../option-values.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { alignColumns, counted } from '../output/text.ts';
import { type PlannedReturn, planReturn } from './return-plan.ts';
import { createArrival, findBundleKey } from './returned-secrets.ts';

const maxShown = 100;

interface ReturnOptions {
  readonly stack?: readonly string[];
  readonly apply?: true;
  readonly create?: true;
  readonly json?: true;
}

interface Call {
  readonly context: AppContext;
  readonly folder: Folder;
  readonly bundle: BundleSettings;
  readonly options: ReturnOptions;
}

/** In the bundle. `there` has the states of workers, by `project/stack`. */
interface OrganizationThere {
  readonly organization: string;
  readonly own: Folder;
  readonly stacks: readonly FolderStack[];
  readonly rows: Map<string, BundledRow>;
}

interface ReturnedStack {
  readonly stack: string;
  readonly action: PlannedReturn['action'] | 'new' | 'returned' | 'created' | 'removed';
  readonly versions: number;
  readonly reason: string;
}

export function addBundleCommands(command: Command, run: CommandRun): void {
  command
    .command('status')
    .description('print how far the bundle is behind, and which stacks failed')
    .option(...jsonOption)
    .action((options: { json?: true }) => status(run, options));
  command
    .command('return')
    .description('import the changes made in the bundle; without --apply, only print them')
    .option('--apply', 'import')
    .option('--create', 'also create stacks that are only in the bundle')
    .option('--stack <pattern>', 'only these stacks: PROJECT/STACK, with * for any characters; repeatable', collect)
    .option(...jsonOption)
    .addHelpText('after', '\nExits with 1 if a stack is refused. See docs/moving.md.')
    .action((options: ReturnOptions) => returnAll(run, options));
}

async function status(run: CommandRun, { json }: { json?: true }): Promise<void> {
  const session = new AdminSession(run.loadConfig(), run);
  await session.withDatabase(async (db) => {
    const rows = createBundleRepository(db);
    const [bundle, lag, stacks] = [await rows.find(), await rows.readLag(), await rows.list()];
    if (bundle === null) throw new TransferError('No worker has begun a bundle: set HOLDFAST_BUNDLE_URL');
    const waiting = (await rows.listUnfinishedImports(maxShown)).map(nameOf);
    const errors = stacks.flatMap(({ error, ...row }) => (error === null ? [] : [{ stack: nameOf(row), error }]));
    const result = {
      location: bundle.location,
      stacks: stacks.length,
      behind: lag.stacks,
      behindSeconds: lag.seconds,
      errors,
      unfinishedImports: waiting,
    };
    const lines = [
      ...errors.map(({ error, stack }) => `${stack}: ${error}`),
      ...waiting.map((stack) => `${stack}: its import has not ended, so its changes do not come: repeat the import`),
      `${bundle.location} has ${counted(stacks.length, 'stack')}; ${counted(lag.stacks, 'stack')} behind` +
        `${lag.stacks === 0 ? '' : `, for up to ${counted(lag.seconds, 'second')}`}, ${counted(errors.length, 'error')}.`,
    ];
    printResult('bundle status', result, { json, text: lines.join('\n') });
  });
}

async function returnAll(run: CommandRun, options: ReturnOptions): Promise<void> {
  const session = new AdminSession(run.loadConfig(), run);
  const bundle = bundleOf(session.config);
  if (bundle === null) throw new TransferError('Set HOLDFAST_BUNDLE_URL: it says where the bundle is');
  const keys = { registersKeys: options.apply ? ('first' as const) : false };
  const folder = await openFolder(bundle.location, bucketDefaults(session.config));
  try {
    await session.withContext(async (context) => {
      if (options.apply) await assertWritable(context.db);
      const call = { context, folder, bundle, options };
      const organizations = await createBundleRepository(context.db).listOrganizations();
      if (options.stack) {
        const names: string[] = [];
        for (const organization of organizations) {
          const { rows, stacks } = await lookAt(call, organization);
          names.push(...stacks.map(({ name }) => name), ...rows.keys());
        }
        assertAllMatch(options.stack, names, bundle);
      }
      const results: ReturnedStack[] = [];
      // Listed one after the other: imports take long, and work in the bundle continues.
      for (const organization of organizations)
        results.push(...(await returnOrganization(call, await lookAt(call, organization))));
      if (results.some(({ action }) => action === 'refused' || action === 'removed')) run.exitCode = 1;
      printResult('bundle return', { stacks: results }, { json: options.json, text: describe(results, options) });
    }, keys);
  } finally {
    await folder.close();
  }
}

/** The rows are read first: if workers write meanwhile, their changes then appear in the folder, which is safe. */
async function lookAt({ context, folder }: Call, organization: string): Promise<OrganizationThere> {
  const own = new SubFolder(folder, `${organization}/`);
  const known = await createBundleRepository(context.db).list(organization);
  const { stacks } = await listFolder(own);
  return { organization, own, stacks, rows: new Map(known.map((row) => [pathOf(row), row])) };
}

async function returnOrganization(
  call: Call,
  { organization, own, rows, stacks }: OrganizationThere,
): Promise<ReturnedStack[]> {
  const { bundle, context, options } = call;
  const patterns = options.stack ?? [];
  const results: ReturnedStack[] = [];
  for (const source of stacks.filter((each) => isSelected(each, patterns))) {
    const row = rows.get(source.name) ?? null;
    rows.delete(source.name);
    const planned = await planReturn({ context, folder: own, organization }, source, row).catch((error: unknown) => ({
      ...{ action: 'refused' as const, reason: messageOf(error), versions: 0, plan: null, there: [] },
    }));
    const stack = `${organization}/${source.name}`;
    const found = { stack, action: planned.action, versions: planned.versions, reason: planned.reason };
    const isNew = planned.action === 'create' && !options.create;
    if (isNew) results.push({ ...found, action: 'new', reason: '--create creates it here' });
    else if (!options.apply || planned.plan === null) results.push(found);
    else {
      try {
        await apply({ ...call, folder: own }, organization, planned, bundle);
        results.push({ ...found, action: planned.action === 'create' ? 'created' : 'returned' });
      } catch (error) {
        results.push({ ...found, action: 'refused', versions: 0, reason: messageOf(error) });
      }
    }
  }
  for (const [name, row] of rows)
    if (row.sha256 !== null && isSelected({ name }, patterns))
      results.push({
        stack: `${organization}/${name}`,
        action: 'removed',
        versions: 0,
        reason: 'it is no longer in the bundle',
      });
  return results;
}

/** The row of the bundle changes with each commit, so that an interrupted return continues where it was. */
async function apply(
  { context, folder }: Call,
  organization: string,
  { plan, there }: PlannedReturn,
  { location, secret }: BundleSettings,
): Promise<void> {
  if (!plan?.content) return;
  const { content, planned } = plan;
  const ref = { organization, project: planned.project as string, stack: planned.stack };
  const found = await context.identity.findOrganization(organization);
  if (!found) throw new TransferError(`There is no organization ${organization}`);
  const key = await findBundleKey(context, secret, content.state.document());
  if (!key) throw new TransferError('HOLDFAST_BUNDLE_PASSPHRASE or HOLDFAST_BUNDLE_KMS is not the one of the bundle');
  const arrival = plan.head && (await createArrival(context, { ref, stackId: plan.head.stackId }, key.crypter));
  const newest = there.find(({ name }) => name === content.state.name)?.sha256 ?? null;
  const last = plan.unrecordedState !== null ? null : (plan.entries.at(-1)?.id ?? null);
  const importer = new StackImporter({
    ...{ context, folder, organization: found, from: location },
    ...(arrival ? { arrival } : {}),
    onCommit: (tx, { entry, stackId, stackVersion }) =>
      createBundleRepository(tx).adopt(ref, { stackId, stackVersion, entry, sha256: entry === last ? newest : null }),
  });
  const { leftOut } = await importer.import(plan);
  if (leftOut.length > 0) throw new TransferError(leftOut.join('; '));
}

function describe(results: readonly ReturnedStack[], { apply }: ReturnOptions): string {
  const rows = results
    .filter(({ action }) => action !== 'unchanged')
    .map(({ action, reason, stack, versions }) => [
      stack,
      action,
      versions === 0 ? '' : counted(versions, 'version'),
      reason,
    ]);
  const unchanged = results.filter(({ action }) => action === 'unchanged').length;
  return [
    ...alignColumns(rows),
    `${counted(unchanged, 'stack')} unchanged, ${counted(rows.length, 'other')}.${apply ? '' : ' Nothing was imported: --apply does.'}`,
  ].join('\n');
}

function nameOf({ organization, project, stack }: Pick<BundledRow, 'organization' | 'project' | 'stack'>): string {
  return `${organization}/${project}/${stack}`;
}
