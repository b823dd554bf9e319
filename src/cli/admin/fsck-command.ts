import { type Command, InvalidArgumentError } from 'commander';
import { createLogger } from '../../shared/platform/logger/logger.ts';
import { type KeyRing, MasterKeyError } from '../../shared/secrets/key-ring.ts';
import { parseMasterKeys } from '../../shared/secrets/master-key-list.ts';
import { createMasterKeyRepository } from '../../shared/secrets/master-key-repository.ts';
import { openMasterKeys } from '../../shared/secrets/open-master-keys.ts';
import type { CommandRun } from '../command-run.ts';
import { type FindingKind, FsckReport, findingKinds } from '../fsck/finding.ts';
import { fsck } from '../fsck/fsck.ts';
import { jsonOption, jsonText } from '../output/outputs.ts';
import { Progress } from '../output/progress.ts';
import type { AdminSession, OpenSession } from './admin-session.ts';
import { recordCommand } from './record-command.ts';

interface FsckFlags {
  readonly all?: true;
  readonly fix?: true;
  readonly json?: true;
  readonly sample: number;
}

const shownPerKind = 20;

/** Its exit code is 1 if a fault was found and not repaired. */
export function addFsckCommand(admin: Command, open: OpenSession, run: CommandRun): void {
  admin
    .command('fsck')
    .description('check database, blob store, keys, audit log and indexes; exits with 1 if anything stays wrong')
    .option('--all', 'read all documents and states, not only a sample')
    .option('--sample <count>', 'how many documents of each kind, and newest states, are read', toCount, 1_000)
    .option('--fix', 'repair what is safe: what is computed from other rows, and copies that can be made again')
    .option(...jsonOption)
    .addHelpText('after', '\nIt also needs the settings of the blob store, and the master keys to check keys.')
    .action(async (flags: FsckFlags) => {
      const report = await check(open(), flags);
      if (flags.json) console.log(jsonText('admin fsck', jsonOf(report)));
      else for (const line of linesOf(report)) console.log(line);
      run.exitCode = report.isSound ? 0 : 1;
    });
}

function toCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It is not a whole number.');
  return Number(text);
}

/** Opens the installation without keys if they cannot be used. */
async function check(session: AdminSession, { all, fix, sample }: FsckFlags): Promise<FsckReport> {
  const report = new FsckReport();
  // The log would only repeat the findings.
  const logger = createLogger({ level: 'silent' }, process.stderr);
  const ring = await openRing(session, report);
  return session.withContext(
    async (context) => {
      // Recorded before the repairs, which take many transactions.
      if (fix) await recordCommand(context.db, 'admin fsck --fix');
      const progress = new Progress();
      const onProgress = progress.report.bind(progress);
      await fsck(context, { fixes: fix ?? false, sample: all ? null : sample, ring, report, onProgress });
      progress.end();
      return report;
    },
    { logger, ring },
  );
}

/** Null: the keys are not set, or cannot be used. */
async function openRing(session: AdminSession, report: FsckReport): Promise<KeyRing | null> {
  const { config, masterKeys, startWait: wait } = session;
  if (masterKeys === null) {
    report.notes.push('Keys were not checked: HOLDFAST_MASTER_KEYS is not set.');
    return null;
  }
  try {
    return await session.withDatabase(async (db) => {
      const rows = createMasterKeyRepository(db);
      const pairs = masterKeys.split(',');
      const known: string[] = [];
      // Opening a key under a new id would record the key.
      for (const [at, { id }] of parseMasterKeys(masterKeys).entries()) {
        if (await rows.find(id)) known.push(pairs[at] as string);
        else report.add('master-key', id, { detail: 'no server of this installation has used it' });
      }
      return known.length === 0
        ? null
        : (await openMasterKeys(known.join(','), { config, rows, wait, registers: false })).ring;
    });
  } catch (error) {
    if (!(error instanceof MasterKeyError)) throw error;
    report.add('master-key', 'HOLDFAST_MASTER_KEYS', { detail: error.message });
    return null;
  }
}

function jsonOf(report: FsckReport) {
  const kinds = Object.fromEntries(
    [...report.counts].map(([kind, counts]) => {
      const { means, remedy, repair } = findingKinds[kind];
      return [kind, { ...counts, means, remedy, repair }];
    }),
  );
  return { ok: report.isSound, checked: report.checked, notes: report.notes, kinds, findings: report.findings };
}

function* linesOf(report: FsckReport): Generator<string> {
  for (const [kind, { fixed, found }] of report.counts) {
    yield* describe(kind);
    const shown = report.findings.filter((finding) => finding.kind === kind).slice(0, shownPerKind);
    for (const { detail, isFixed, object } of shown)
      yield `  ${object}${detail === null ? '' : `: ${detail}`}${isFixed ? ' (repaired)' : ''}`;
    if (found > shown.length) yield `  and ${found - shown.length} more; --json lists up to 1000 of each kind`;
    if (fixed > 0) yield `  ${fixed} of ${found} repaired.`;
    yield '';
  }
  const checked = Object.entries(report.checked).map(([what, count]) => `${count} ${what}`);
  yield `Checked ${checked.join(', ')}.`;
  yield* report.notes;
  yield report.counts.size === 0
    ? 'Nothing is wrong.'
    : report.isSound
      ? 'Everything was repaired.'
      : 'Some of it stays wrong.';
}

function describe(kind: FindingKind): string[] {
  const { means, remedy, repair } = findingKinds[kind];
  return [`${kind}: ${means}`, `  ${remedy}`, ...(repair === null ? [] : [`  --fix ${repair}.`])];
}
