import type { Command } from 'commander';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import type { AppContext } from '../../shared/context.ts';
import { listFolder, MovingError, metaFile, readText } from '../../shared/diy/diy-layout.ts';
import { createExportedStackRepository } from '../../shared/diy/exported-stack-repository.ts';
import { PassphraseCrypter } from '../../shared/diy/passphrase-crypter.ts';
import { type ExportedStack, exportStack } from '../../shared/diy/stack-exporter.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { bucketDefaults, openFolder } from '../../shared/platform/blobs/open-folder.ts';
import { readConfigPassphrase } from '../../shared/platform/config/passphrase.ts';
import { nameMatches } from '../../shared/stacks/name-pattern.ts';
import type { StackRow } from '../../shared/stacks/stack-repository.ts';
import { bytesOf } from '../../shared/state/checkpoints/body-buffer.ts';
import { AdminSession } from '../admin/admin-session.ts';
import { operator } from '../admin/operator.ts';
import type { CommandRun } from '../command-run.ts';
import { messageOf } from './import-plan.ts';
import { collect, forEachStack, toCount } from './moving-options.ts';
import { counted } from './moving-report.ts';

const pageRows = 500;

interface ExportOptions {
  readonly organization: string;
  readonly to: string;
  readonly stack?: readonly string[];
  readonly history?: number;
  readonly parallel: number;
  readonly json?: true;
}

/** Adds the options of `holdfast export`. */
export function addExportOptions(command: Command, run: CommandRun): void {
  command
    .requiredOption('--organization <name>', 'organization whose stacks are exported')
    .requiredOption('--to <place>', 'file://DIR or s3://BUCKET/PREFIX, for `pulumi login`')
    .option('--stack <pattern>', 'only these stacks: PROJECT/STACK, with * for any characters; repeatable', collect)
    .option('--history <count>', 'how many of the newest updates of each stack; by default all', toHistory)
    .option('--parallel <count>', 'stacks at once', toCount, 4)
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
Secrets that the server has encrypted are encrypted for the passphrase in PULUMI_CONFIG_PASSPHRASE, or in the file
PULUMI_CONFIG_PASSPHRASE_FILE. The configuration of the stacks is in the folder config. See docs/moving.md.`,
    )
    .action((options: ExportOptions) => runExport(run, options));
}

async function runExport(run: CommandRun, options: ExportOptions): Promise<void> {
  const session = new AdminSession(run.loadConfig());
  const folder = await openFolder(options.to, bucketDefaults(session.config));
  const passphrase = readConfigPassphrase();
  let created: Promise<PassphraseCrypter> | null = null;
  const crypter = (): Promise<PassphraseCrypter> => {
    if (passphrase === null)
      throw new MovingError('it has secrets of this server: set PULUMI_CONFIG_PASSPHRASE, which is to encrypt them');
    created ??= PassphraseCrypter.create(passphrase);
    return created;
  };
  try {
    await session.withContext(async (context) => {
      const stacks = await listStacks(context, options);
      const there = await openTarget(folder, options);
      const history = options.history ?? maxHistory;
      const source = operatorSource(operator());
      const parts = { context, folder, to: options.to, source, history, there, crypter };
      const results = await forEachStack(stacks, options.parallel, 'stacks', async (stack) => {
        const name = `${stack.project}/${stack.stack}`;
        try {
          return { stack: name, isComplete: true, ...described(await exportStack(parts, stack)) };
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
        `Exported ${counted(complete.length, 'stack')} with ${counted(sum('versions'), 'update')} to ${options.to}; ` +
          `${counted(sum('reencrypted'), 'secret')} encrypted for the passphrase.`,
      ];
      console.log(options.json ? JSON.stringify({ stacks: results }) : lines.join('\n'));
      if (complete.length < results.length) run.exitCode = 1;
    });
  } finally {
    await folder.close();
  }
}

/**
 * Makes the folder one that the CLI reads, and notes whose it is. Returns the newest update of each stack there. Throws MovingError if
 * it has stacks that no export of the organization has written.
 */
async function openTarget(folder: Folder, { organization, to }: ExportOptions): Promise<ReadonlyMap<string, string>> {
  const { stacks, strays } = await listFolder(folder);
  const note = JSON.stringify({ organization });
  if (stacks.length + strays.length > 0 && (await readText(folder, noteFile)) !== note)
    throw new MovingError(
      `${to} has other stacks than those of an export of ${organization}: name a folder of its own`,
    );
  await folder.write(noteFile, bytesOf(Buffer.from(note))());
  await folder.write(metaFile, bytesOf(Buffer.from('version: 1\n'))());
  return new Map(stacks.flatMap(({ history, name }) => history.slice(-1).map(({ id }) => [name, id] as const)));
}

/** Says which organization the folder is an export of. */
const noteFile = 'holdfast-export.json';

/** Postgres knows no larger limit. */
const maxHistory = 2 ** 31 - 1;

async function listStacks({ db, identity }: AppContext, { organization, stack }: ExportOptions): Promise<StackRow[]> {
  const found = await identity.findOrganization(organization);
  if (!found) throw new MovingError(`There is no organization ${JSON.stringify(organization)}`);
  const rows = createExportedStackRepository(db);
  const stacks: StackRow[] = [];
  for (let after = { project: '', stack: '' }; ; ) {
    const page = await rows.listStacks(found.id, after, pageRows);
    stacks.push(...page);
    if (page.length < pageRows) break;
    after = page.at(-1) as StackRow;
  }
  if (stack === undefined) return stacks;
  return stacks.filter((each) => stack.some((pattern) => nameMatches(pattern, `${each.project}/${each.stack}`)));
}

function toHistory(text: string): number {
  return text === '0' ? 0 : Math.min(toCount(text), maxHistory);
}

function described({ notes, reencrypted, versions }: ExportedStack): Omit<ExportedStack, 'newest' | 'sha256'> {
  return { versions, reencrypted, notes };
}
