import { open, readFile, rm } from 'node:fs/promises';
import { TransferError } from '../../shared/diy/diy-layout.ts';
import { codeOf } from '../../shared/platform/errors/causes.ts';
import { alignColumns, counted, formatBytes } from '../output/text.ts';
import type { PlannedStack } from './import-plan.ts';

/** The file is written with `--plan`. */
export interface PlanFile {
  readonly format: 1;
  readonly from: string;
  readonly organization: string;
  readonly stacks: readonly PlannedStack[];
  /** Files that are in neither layout of the source. */
  readonly strays: readonly string[];
}

/** Throws TransferError if the plan is for another import. */
export async function readPlannedNames(
  file: string,
  { from, organization }: Pick<PlanFile, 'from' | 'organization'>,
): Promise<ReadonlySet<string>> {
  const text = await readFile(file, 'utf8');
  const plan = parsePlan(text);
  if (plan?.format !== 1 || !plan.stacks) throw new TransferError(`${file} is not a plan`);
  if (plan.from !== from || plan.organization !== organization)
    throw new TransferError(`${file} is a plan from ${plan.from} to ${plan.organization}`);
  return new Set(plan.stacks.map(({ source }) => source));
}

function parsePlan(text: string): Partial<PlanFile> | null {
  try {
    return JSON.parse(text) as Partial<PlanFile> | null;
  } catch {
    return null;
  }
}

/** `url` is this server's, if the source decrypts secrets with its own keys. */
export function describePlan(
  { organization, stacks }: PlanFile,
  remarks: readonly string[],
  url: string | null,
): string {
  const rows = stacks.map(({ action, bytes, notes, quarantine, secretsProvider, source, versions }) => [
    ...[source, action, String(versions), formatBytes(bytes), secretsProvider ?? '-'],
    [...(quarantine === null ? [] : [inQuarantine(quarantine)]), ...notes].join('; '),
  ]);
  const totals = stacks.reduce(
    (sum, { bytes, previews, versions }) => ({
      ...{ versions: sum.versions + versions, previews: sum.previews + previews, bytes: sum.bytes + bytes },
    }),
    { versions: 0, previews: 0, bytes: 0 },
  );
  const count = (action: PlannedStack['action']): number => stacks.filter((each) => each.action === action).length;
  return [
    ...alignColumns([['STACK', 'ACTION', 'VERSIONS', 'SIZE', 'SECRETS', 'NOTES'], ...rows]),
    ...remarks,
    `${organization}: ${count('create')} to create, ${count('continue')} to continue, ${count('none')} complete, ` +
      `${count('leave out')} left out; ${countedAll(totals)}, ${formatBytes(totals.bytes)}.`,
    ...describeSecrets(stacks, url),
    'Nothing was changed. Import with --apply.',
  ].join('\n');
}

/** Returns a text like `2 versions and 1 preview`. */
export function countedAll({ previews, versions }: { readonly versions: number; readonly previews: number }): string {
  return counted(versions, 'version') + (previews > 0 ? ` and ${counted(previews, 'preview')}` : '');
}

/** Why the CLI refuses a stack. */
export function inQuarantine(reason: string): string {
  return `in quarantine, because the CLI refuses its newest state: ${reason}`;
}

/** `url` is this server's, if the source decrypts secrets with its own keys. */
function describeSecrets(stacks: readonly PlannedStack[], url: string | null): string[] {
  const keepers = Map.groupBy(
    stacks.filter(({ action, secretsProvider }) => action !== 'leave out' && secretsProvider !== null),
    ({ secretsProvider }) => secretsProvider,
  );
  const moved = url === null ? undefined : keepers.get('service');
  if (moved !== undefined) keepers.delete('service');
  const kept = [...keepers].map(([type, users]) => `${type} (${counted(users.length, 'stack')})`);
  return [
    ...(moved === undefined
      ? []
      : [
          `Secrets of ${counted(moved.length, 'stack')} are encrypted with the keys of this server, which the CLI finds at ${url}.`,
        ]),
    ...(kept.length === 0
      ? []
      : [
          `Secrets stay encrypted as they are, by ${kept.join(', ')}: the CLI needs the passphrases and KMS keys as before. ` +
            '`pulumi stack change-secrets-provider default` moves a stack to the keys of the server.',
        ]),
  ];
}

/** Called before the plan is made, which may take an hour. Throws the error of the system. */
export async function assertFileWritable(file: string): Promise<void> {
  const made = await open(file, 'ax').catch((error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error;
    return null;
  });
  await (made ?? (await open(file, 'a'))).close();
  // If no plan can be made, no file is left behind.
  if (made !== null) await rm(file);
}
