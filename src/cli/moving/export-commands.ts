import type { Command } from 'commander';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import type { AppContext } from '../../shared/context.ts';
import { TransferError } from '../../shared/diy/diy-layout.ts';
import { createExportedStackRepository } from '../../shared/diy/exported-stack-repository.ts';
import { PassphraseCrypter } from '../../shared/diy/passphrase-crypter.ts';
import { type ExportedStack, exportStack } from '../../shared/diy/stack-exporter.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { bucketDefaults, openFolder } from '../../shared/platform/blobs/open-folder.ts';
import { readConfigPassphrase } from '../../shared/platform/config/passphrase.ts';
import { nameMatches } from '../../shared/stacks/name-pattern.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { AdminSession } from '../admin/admin-session.ts';
import { operator } from '../admin/operator-name.ts';
import type { CommandRun } from '../command-run.ts';
import { collect, toCount } from '../option-values.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { counted } from '../output/text.ts';
import { exportArchive } from './archive/archive-export.ts';
import { openTarget, sameButForCase, TargetGuard } from './export-target.ts';
import { forEachStack } from './for-each-stack.ts';
import { assertAllMatch, messageOf } from './import-plan.ts';

const pageRows = 500;

interface ExportOptions {
  readonly organization: string;
  readonly to?: string;
  readonly archive?: string;
  readonly recipient?: readonly string[];
  readonly stack?: readonly string[];
  readonly history?: number;
  readonly parallel: number;
  readonly json?: true;
}

export function addExportOptions(command: Command, run: CommandRun): void {
  command
    .requiredOption('--organization <name>', 'organization whose stacks are exported')
    .option('--to <location>', 'file://DIR or s3://BUCKET/PREFIX, for `pulumi login`')
    .option(
      '--archive <location>',
      'DIR or s3://BUCKET/PREFIX, for `holdfast import --from archive`: all versions and events',
    )
    .option('--recipient <age1...>', 'encrypt the secrets of the archive to this age recipient; repeatable', collect)
    .option('--stack <pattern>', 'only these stacks: PROJECT/STACK, with * for any characters; repeatable', collect)
    .option('--history <count>', 'how many of the newest updates of each stack; by default all', toHistory)
    .option('--parallel <count>', 'stacks at once', toCount, 4)
    .option(...jsonOption)
    .addHelpText(
      'after',
      `
Secrets that the server has encrypted are encrypted for the passphrase in PULUMI_CONFIG_PASSPHRASE, or in the file
PULUMI_CONFIG_PASSPHRASE_FILE. The configuration of the stacks is in the folder config. An export to an archive
adds what is new. See docs/moving.md.`,
    )
    .action((options: ExportOptions) => runExport(run, options));
}

async function runExport(run: CommandRun, options: ExportOptions): Promise<void> {
  const { archive, recipient, to } = options;
  if ((archive === undefined) === (to === undefined)) throw new TransferError('Give either --to or --archive');
  if (archive !== undefined && options.history !== undefined)
    throw new TransferError('An archive has all versions: --history needs --to');
  if (to !== undefined && recipient !== undefined) throw new TransferError('--recipient needs --archive');
  const session = new AdminSession(run.loadConfig(), run);
  const folder = await openFolder(archive ?? (to as string), bucketDefaults(session.config));
  try {
    await session.withContext((context) =>
      archive === undefined
        ? exportFolder(run, { context, folder, to: to as string }, options)
        : exportToArchive(run, { context, folder, to: archive }, options),
    );
  } finally {
    await folder.close();
  }
}

interface ExportTarget {
  readonly context: AppContext;
  readonly folder: Folder;
  readonly to: string;
}

async function exportToArchive(run: CommandRun, target: ExportTarget, options: ExportOptions): Promise<void> {
  const { organization, stacks } = await listStacks(target.context, options);
  const protection = { recipients: options.recipient ?? [], passphrase: readConfigPassphrase() };
  const isWhole = options.stack === undefined;
  const call = { ...target, organization, stacks, isWhole, protection, parallel: options.parallel };
  const { isComplete, json, text } = await exportArchive(call);
  printResult('export', json, { json: options.json, text });
  if (!isComplete) run.exitCode = 1;
}

async function exportFolder(
  run: CommandRun,
  { context, folder, to }: ExportTarget,
  options: ExportOptions,
): Promise<void> {
  const passphrase = readConfigPassphrase();
  let created: Promise<PassphraseCrypter> | null = null;
  const crypter = (): Promise<PassphraseCrypter> => {
    if (passphrase === null)
      throw new TransferError("its secrets use this server's keys: set PULUMI_CONFIG_PASSPHRASE to encrypt them");
    created ??= PassphraseCrypter.create(passphrase);
    return created;
  };
  const { stacks } = await listStacks(context, options);
  const { isCaseless } = await openTarget(folder, { organization: options.organization, to });
  const same = sameButForCase(isCaseless ? stacks.map((each) => `${each.project}/${each.stack}`) : []);
  const history = options.history ?? maxHistory;
  const parts = { context, folder, to, source: operatorSource(operator()), history, crypter };
  const results = await forEachStack(stacks, options.parallel, 'stacks', async (stack) => {
    const name = `${stack.project}/${stack.stack}`;
    const guard = new TargetGuard(folder, stack);
    try {
      if (same.has(name))
        throw new TransferError('another stack has the same files there, where case makes no difference');
      await guard.claim();
      const exported = await exportStack({ ...parts, beforeState: guard.beforeState }, stack);
      return { stack: name, isComplete: true, ...described(exported) };
    } catch (error) {
      return { stack: name, isComplete: false, versions: 0, reencrypted: 0, notes: [messageOf(error)] };
    }
  });
  const complete = results.filter(({ isComplete }) => isComplete);
  const sum = (of: 'versions' | 'reencrypted'): number => complete.reduce((total, each) => total + each[of], 0);
  const lines = [
    ...results.flatMap(({ isComplete, notes, stack }) =>
      notes.map((note) => `${stack}: ${isComplete ? '' : 'not exported: '}${note}`),
    ),
    `Exported ${counted(complete.length, 'stack')} with ${counted(sum('versions'), 'update')} to ${to}; ` +
      `${counted(sum('reencrypted'), 'secret')} encrypted for the passphrase.`,
  ];
  printResult('export', { stacks: results }, { json: options.json, text: lines.join('\n') });
  if (complete.length < results.length) run.exitCode = 1;
}

/** The largest limit that Postgres accepts. */
const maxHistory = 2 ** 31 - 1;

async function listStacks({ db, identity }: AppContext, { organization: name, stack }: ExportOptions) {
  const organization = await identity.findOrganization(name);
  if (!organization) throw new TransferError(`There is no organization ${JSON.stringify(name)}`);
  const rows = createExportedStackRepository(db);
  const all: StackRow[] = [];
  for (let after = { project: '', stack: '' }; ; ) {
    const page = await rows.listStacks(organization.id, after, pageRows);
    all.push(...page);
    if (page.length < pageRows) break;
    after = page.at(-1) as StackRow;
  }
  const isSelected = (each: StackRow): boolean =>
    stack?.some((pattern) => nameMatches(pattern, `${each.project}/${each.stack}`)) ?? true;
  const names = all.map((each) => `${each.project}/${each.stack}`);
  assertAllMatch(stack ?? [], names, { location: name });
  return { organization, stacks: all.filter(isSelected) };
}

function toHistory(text: string): number {
  return text === '0' ? 0 : Math.min(toCount(text), maxHistory);
}

function described({ notes, reencrypted, versions }: ExportedStack): Omit<ExportedStack, 'newest' | 'sha256'> {
  return { versions, reencrypted, notes };
}
