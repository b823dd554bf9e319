import { type Command, InvalidArgumentError } from 'commander';
import type { AppContext } from '../../shared/context.ts';
import { formatStackRef, parseQualifiedName, type StackRef } from '../../shared/stacks/names.ts';
import type { CommandRun } from '../command-run.ts';
import { readBackDocuments, reportTo } from '../fsck/read-back.ts';
import type { Printed } from '../output/output-types.ts';
import { jsonOption, type outputs, printResult } from '../output/outputs.ts';
import { Progress } from '../output/progress.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';

/** Its exit code is 1 if a document stays damaged or cannot be read. */
export function addScrubCommand(admin: Command, open: OpenSession, run: CommandRun): void {
  admin
    .command('scrub')
    .description(
      'read all stored states, events and policy packs now, and repair what is damaged; exits with 1 if something stays damaged',
    )
    .option('--stack <organization/project/stack>', 'only the states and events of this stack', toStackRef)
    .option(...jsonOption)
    .addHelpText('after', '\nIt also needs the settings of the blob store.')
    .action(async ({ json, stack }: { readonly json?: true; readonly stack?: StackRef }) => {
      const isIntact = await open().withContext((context) => scrub(context, stack ?? null, json));
      run.exitCode = isIntact ? 0 : 1;
    });
}

function toStackRef(text: string): StackRef {
  const ref = parseQualifiedName(text);
  if (!ref) throw new InvalidArgumentError('It is not of the form organization/project/stack.');
  return ref;
}

async function scrub(context: AppContext, ref: StackRef | null, json: true | undefined): Promise<boolean> {
  const stack = ref && (await context.stacks.find(ref));
  if (ref && !stack) throw new CommandRefusedError(`there is no stack ${formatStackRef(ref)}`);
  const progress = new Progress();
  const { checked, damaged, damagedArchives, damagedSegments, repaired, unrepaired, unread } = await readBackDocuments(
    context,
    stack?.id ?? null,
    { onChecked: reportTo(progress, stack === null) },
  );
  progress.end();
  const left: Printed<(typeof outputs)['admin scrub']>['unrepaired'][number][] = [];
  for (const id of unrepaired) {
    const owner = await context.documentChecks.findOwner(id);
    const text = owner && `${formatStackRef(owner)}, version ${owner.stackVersion ?? 0}`;
    left.push({ kind: 'checkpoint', id, owner: text });
  }
  for (const id of damagedSegments) {
    const owner = await context.eventSegments.findOwner(id);
    left.push({ kind: 'segment', id, owner: owner && `${formatStackRef(owner)}, events of update ${owner.updateId}` });
  }
  for (const id of damagedArchives) {
    const pack = await context.policyArchives.describe(id);
    left.push({ kind: 'archive', id, owner: pack === null ? null : `policy pack ${pack}` });
  }
  const failed = unread.map(({ error, id }) => ({ id, error: (error as Error).message }));
  const lines = [
    `Checked ${checked} documents: ${damaged} damaged, ${repaired} of them repaired.`,
    // A document without an owner was deleted meanwhile.
    ...left.flatMap(({ id, kind, owner }) => (owner === null ? [] : [`Damaged: ${owner} (${kind} ${id})`])),
    ...failed.map(({ error, id }) => `Not read: ${id}: ${error}`),
  ];
  const found = { checked, damaged, repaired, unrepaired: left, unread: failed };
  printResult('admin scrub', found, { json, text: lines.join('\n') });
  return left.length + failed.length === 0;
}
