import { readFile, writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import type { AppContext } from '../../shared/context.ts';
import { TransferError } from '../../shared/diy/diy-layout.ts';
import { bucketDefaults, openFolder } from '../../shared/platform/blobs/open-folder.ts';
import { readAccessToken } from '../../shared/platform/config/access-token.ts';
import type { Config } from '../../shared/platform/config/config.ts';
import { readConfigPassphrase } from '../../shared/platform/config/passphrase.ts';
import { createReadOnlyRepository } from '../../shared/platform/read-only/read-only-repository.ts';
import { AdminSession } from '../admin/admin-session.ts';
import type { CommandRun } from '../command-run.ts';
import { collect, toCount } from '../option-values.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { counted, formatBytes } from '../output/text.ts';
import { ArchiveSource } from './archive/archive-source.ts';
import { assertWritable } from './assert-writable.ts';
import { FolderSource } from './folder-source.ts';
import { forEachStack } from './for-each-stack.ts';
import { messageOf, planStack, type StackPlan } from './import-plan.ts';
import { beginRun, gapsOf, noteGaps, notRead, unrecordedRun } from './import-run.ts';
import { selectStacks } from './import-selection.ts';
import { createImportedVersionRepository } from './imported-version-repository.ts';
import { mapSource, type StackMapping, toMapping, toUserMapping, type UserMapping } from './mapped-source.ts';
import type { MovingSource, SourceGap, SourceListing, SourceStack } from './moving-source.ts';
import { assertFileWritable, countedAll, describePlan, inQuarantine, type PlanFile } from './plan-report.ts';
import { rollBackStack } from './rollback-import.ts';
import { isService, ServiceSource } from './service-source.ts';
import { StackImporter } from './stack-importer.ts';
import { serverUrl } from './stack-secrets.ts';
import { verifyStack } from './verify-import.ts';

interface ImportOptions {
  readonly from: string;
  readonly organization: string;
  readonly sourceOrganization?: string;
  readonly stack?: readonly string[];
  readonly plan?: string;
  readonly parallel: number;
  readonly apply?: true;
  readonly verify?: true;
  readonly rollback?: true;
  readonly map?: readonly StackMapping[];
  readonly mapUser?: readonly UserMapping[];
  readonly identity?: string;
  readonly json?: true;
}

interface ImportCall {
  readonly context: AppContext;
  readonly source: MovingSource;
  readonly organization: { readonly id: string; readonly name: string };
  readonly options: ImportOptions;
  readonly listing: SourceListing;
  readonly stacks: readonly SourceStack[];
  readonly gaps: readonly SourceGap[];
}

export function addImportOptions(command: Command, run: CommandRun): void {
  command
    .argument('[location]', 'with `--from archive`: DIR or s3://BUCKET/PREFIX, as for `holdfast export --archive`')
    .requiredOption(
      '--from <location>',
      'file://DIR, s3://BUCKET/PREFIX or https://HOST, as for `pulumi login`; or `archive`, followed by its location',
    )
    .requiredOption('--organization <name>', 'organization that gets the stacks')
    .option('--source-organization <name>', 'organization of the service https://HOST; by default the same name')
    .option('--stack <pattern>', 'only these stacks: PROJECT/STACK, with * for any characters; repeatable', collect)
    .option(
      '--plan <file>',
      'write the plan as JSON; with --apply, --verify or --rollback, take only the stacks that it lists',
    )
    .option('--apply', 'import; without it, only the plan is printed')
    .option('--verify', 'compare what was imported with the source; exits with 1 if something differs')
    .option('--rollback', 'list imported stacks that were not updated here; with --apply, delete them')
    .option(
      '--map <names>',
      'PROJECT/STACK=PROJECT/STACK: name in the source, and name here; give it in every call; repeatable',
      toMapping,
    )
    .option('--map-user <names>', 'NAME=LOGIN: user of the source, and their login here; repeatable', toUserMapping)
    .option('--identity <file>', 'age identities that decrypt the secrets of an archive')
    .option('--parallel <count>', 'stacks at once', toCount, 4)
    .option(...jsonOption)
    .addHelpText(
      'after',
      '\nRun it again after an interruption, or for a second pass: it continues. The token for https://HOST is in ' +
        'PULUMI_ACCESS_TOKEN, the passphrase of an archive in PULUMI_CONFIG_PASSPHRASE. See docs/moving.md.',
    )
    .action((location: string | undefined, options: ImportOptions) => runImport(run, location ?? null, options));
}

async function runImport(run: CommandRun, archive: string | null, options: ImportOptions): Promise<void> {
  if (options.verify && (options.apply || options.rollback))
    throw new TransferError('Run --verify without --apply and --rollback');
  const session = new AdminSession(run.loadConfig(), run);
  const isCarriedOut = options.apply || options.verify || options.rollback;
  if (options.plan !== undefined && !isCarriedOut) await assertFileWritable(options.plan);
  const source = mapSource(await openSource(archive, options, session.config), options.map ?? []);
  try {
    const listing = await source.list();
    const { gaps, stacks } = await selectStacks(source, listing, {
      ...{ organization: options.organization, patterns: options.stack ?? [] },
      planFile: isCarriedOut ? (options.plan ?? null) : null,
    });
    const keys = { registersKeys: options.apply ? ('first' as const) : false };
    await session.withContext(async (context) => {
      const organization = await context.identity.findOrganization(options.organization);
      if (!organization)
        throw new TransferError(
          `There is no organization ${JSON.stringify(options.organization)}: see holdfast admin --help`,
        );
      if (options.apply) await assertWritable(context.db);
      const call = { context, source, organization, options, listing, stacks, gaps };
      const act = options.verify ? verify : options.rollback ? rollBack : options.apply ? importAll : planOnly;
      const isComplete = await act(call);
      if (!isComplete) run.exitCode = 1;
    }, keys);
  } finally {
    await source.close();
  }
}

async function openSource(archive: string | null, options: ImportOptions, config: Config): Promise<MovingSource> {
  const { from, identity, organization, sourceOrganization } = options;
  if ((from === 'archive') !== (archive !== null))
    throw new TransferError('Name an archive as `--from archive DIR` or `--from archive s3://BUCKET/PREFIX`');
  if (archive === null && identity !== undefined) throw new TransferError('--identity needs --from archive');
  if (archive !== null) {
    if (sourceOrganization !== undefined)
      throw new TransferError('An archive has one organization: leave out --source-organization');
    const identities = identity === undefined ? null : await readFile(identity, 'utf8');
    const access = { identities, passphrase: readConfigPassphrase() };
    return new ArchiveSource(await openFolder(archive, bucketDefaults(config)), `archive ${archive}`, access);
  }
  if (isService(from))
    return new ServiceSource({ from, organization: sourceOrganization ?? organization, token: readAccessToken() });
  if (sourceOrganization !== undefined) throw new TransferError('Only a service https://HOST has organizations');
  return new FolderSource(await openFolder(from, bucketDefaults(config)), from);
}

async function planOnly({ context, gaps, listing, options, source, stacks }: ImportCall): Promise<boolean> {
  // Keeps only the printed part of each plan: all plans together may exceed the memory.
  const planned = await forEachStack(
    stacks,
    options.parallel,
    'planned stacks',
    async (stack) => (await planStack({ context, organization: options.organization }, stack)).planned,
  );
  const plan: PlanFile = {
    ...{ format: 1, from: source.location, organization: options.organization, strays: listing.strays },
    stacks: planned,
  };
  const remarks = [...listing.remarks, ...listing.leftOut, ...gaps.map(({ text }) => text)];
  const text = describePlan(plan, remarks, isOfServer(options) ? serverUrl(context.config) : null);
  printResult('import', plan, { json: options.json, text });
  if (options.plan !== undefined) await writeFile(options.plan, `${JSON.stringify(plan, null, 2)}\n`);
  return true;
}

/** Plans and imports stack by stack: a plan that waits for other stacks is large, and becomes outdated. */
async function importAll(call: ImportCall): Promise<boolean> {
  const { context, gaps, listing, options, stacks } = call;
  const users = await findUsers(call.context, options.mapUser ?? []);
  const importer = new StackImporter({ ...call, from: call.source.location, users });
  const run = await beginRun(call.context, call.organization.id, { kind: 'import', location: call.source.location });
  const importOne = async (plan: StackPlan) => {
    const { source: stack, action, notes, quarantine } = plan.planned;
    if (action === 'leave out') return { stack, versions: 0, previews: 0, leftOut: notes, quarantine };
    try {
      const { leftOut, previews, versions } = await importer.import(plan);
      return { stack, versions, previews, leftOut: [...notes, ...leftOut], quarantine };
    } catch (error) {
      return { stack, versions: 0, previews: 0, leftOut: [`interrupted: ${messageOf(error)}`], quarantine };
    }
  };
  const quarantined: string[] = [];
  const results = await forEachStack(stacks, options.parallel, 'imported stacks', async (stack) => {
    const plan = await planStack({ context, organization: options.organization }, stack);
    const { planned } = plan;
    const result = await importOne(plan);
    const notes = [...result.leftOut, ...gapsOf(gaps, stack.name)];
    if (planned.action !== 'none' || notes.length > 0)
      await run.note({ ...planned, ...result, name: result.stack, stack: planned.stack, notes });
    if (planned.quarantine !== null && planned.action !== 'leave out')
      quarantined.push(`${planned.source}: ${inQuarantine(planned.quarantine)}`);
    return result;
  });
  await noteGaps(run, gaps, { location: call.source.location, noted: stacks.map(({ name }) => name) });
  await run.end();
  const versions = results.reduce((sum, result) => sum + result.versions, 0);
  const incomplete = results.filter(({ leftOut }) => leftOut.length > 0);
  const previews = results.reduce((sum, result) => sum + result.previews, 0);
  const changed = results.filter((result) => result.versions + result.previews > 0).length;
  const lines = [
    ...quarantined.toSorted(),
    ...incomplete.flatMap(({ leftOut, stack }) => leftOut.map((reason) => `${stack}: ${reason}`)),
    ...listing.leftOut,
    ...gaps.map(({ text }) => text),
    `Imported ${countedAll({ versions, previews })} of ${counted(changed, 'stack')} into ${options.organization}.`,
    ...(incomplete.length === 0 ? [] : [`${counted(incomplete.length, 'stack')} not imported completely: see above.`]),
  ];
  printResult(
    'import',
    { stacks: results, gaps: gaps.map(({ text }) => text) },
    { json: options.json, text: lines.join('\n') },
  );
  return incomplete.length === 0 && gaps.length === 0;
}

/** Throws TransferError if a user does not exist here. */
async function findUsers({ db }: AppContext, mappings: readonly UserMapping[]): Promise<ReadonlyMap<string, string>> {
  const rows = createImportedVersionRepository(db);
  const found = mappings.map(async ({ from, login }) => {
    const id = await rows.findUser(login);
    if (id === null) throw new TransferError(`There is no user ${JSON.stringify(login)}`);
    return [from, id] as const;
  });
  return new Map(await Promise.all(found));
}

async function verify({ context, gaps, options, organization, source, stacks }: ImportCall): Promise<boolean> {
  const { mode } = await createReadOnlyRepository(context.db).find();
  const isRecorded = mode === null && !context.readOnly.isFenced;
  const run = isRecorded
    ? await beginRun(context, organization.id, { kind: 'verify', location: source.location })
    : unrecordedRun;
  const results = await forEachStack(stacks, options.parallel, 'verified stacks', async (stack) => {
    const result = await verifyStack({ context, organization: options.organization }, stack);
    await run.note({ ...stack, ...notRead, ...result, notes: [...result.problems, ...gapsOf(gaps, stack.name)] });
    return result;
  });
  await noteGaps(run, gaps, { location: source.location, noted: stacks.map(({ name }) => name) });
  await run.end();
  const different = results.filter(({ problems }) => problems.length > 0);
  const sum = (of: 'versions' | 'previews' | 'bytes'): number => results.reduce((total, each) => total + each[of], 0);
  const compared = `${counted(results.length, 'stack')}${sum('previews') > 0 ? ',' : ' and'} ${countedAll({
    versions: sum('versions'),
    previews: sum('previews'),
  })}`;
  const lines = [
    ...results.flatMap(({ leftOut, source }) => leftOut.map((reason) => `${source}: left out: ${reason}`)),
    ...results.flatMap(({ problems, source }) => problems.map((problem) => `${source}: ${problem}`)),
    ...gaps.map(({ text }) => text),
    `Compared ${compared}, ${formatBytes(sum('bytes'))} of states: ${
      different.length === 0 ? 'no differences' : `${counted(different.length, 'stack')} with differences`
    }.`,
  ];
  printResult(
    'import',
    { stacks: results, gaps: gaps.map(({ text }) => text) },
    { json: options.json, text: lines.join('\n') },
  );
  return different.length === 0 && gaps.length === 0;
}

async function rollBack({ context, options, organization, source, stacks }: ImportCall): Promise<boolean> {
  const parts = { context, organization: options.organization, from: source.location };
  const run = options.apply
    ? await beginRun(context, organization.id, { kind: 'rollback', location: source.location })
    : null;
  const results = await forEachStack(stacks, options.parallel, 'stacks', async (stack) => {
    const result = await rollBackStack(parts, stack, { apply: options.apply === true });
    const versions = result.action === 'delete' ? result.versions : 0;
    const notes = result.reason === null ? [] : [result.reason];
    if (result.action !== 'none') await run?.note({ ...stack, ...notRead, versions, notes });
    return result;
  });
  await run?.end();
  const deleted = results.filter(({ action }) => action === 'delete');
  const kept = results.filter(({ action }) => action === 'keep');
  const versions = deleted.reduce((sum, result) => sum + result.versions, 0);
  const what = `${counted(deleted.length, 'stack')} with ${counted(versions, 'imported version')}`;
  const lines = [
    ...(options.apply ? [] : deleted.map((each) => `${each.source}: to delete`)),
    ...kept.map((each) => `${each.source}: kept: ${each.reason}`),
    options.apply
      ? `Deleted ${what}; kept ${kept.length}.`
      : `${what} to delete, ${kept.length} to keep. Nothing was changed. Delete with --rollback --apply.`,
  ];
  printResult('import', { stacks: results, gaps: [] }, { json: options.json, text: lines.join('\n') });
  return kept.length === 0;
}

/** Whether the source's server may have kept the keys of its secrets. */
function isOfServer({ from }: ImportOptions): boolean {
  return isService(from) || from === 'archive';
}
