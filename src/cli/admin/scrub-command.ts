import { type Command, InvalidArgumentError } from 'commander';
import type { AppContext } from '../../shared/context.ts';
import { formatStackRef, parseQualifiedName, type StackRef } from '../../shared/stacks/names.ts';
import type { CommandRun } from '../command-run.ts';
import { checkDocuments } from '../state/check-documents.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';

/** Adds `holdfast admin scrub`. Its exit code is 1 if a document stays damaged or cannot be read. */
export function addScrubCommand(admin: Command, open: OpenSession, run: CommandRun): void {
  admin
    .command('scrub')
    .description(
      'read all stored checkpoints now and repair damaged ones where possible; exits with 1 if one stays damaged',
    )
    .option('--stack <organization/project/stack>', 'only the checkpoints of this stack', toStackRef)
    .addHelpText('after', '\nIt also needs the settings of the blob store.')
    .action(async ({ stack }: { readonly stack?: StackRef }) => {
      const isIntact = await open().withContext((context) => scrub(context, stack ?? null));
      run.exitCode = isIntact ? 0 : 1;
    });
}

function toStackRef(text: string): StackRef {
  const ref = parseQualifiedName(text);
  if (!ref) throw new InvalidArgumentError('It is not of the form organization/project/stack.');
  return ref;
}

/** Returns true if no document is damaged. */
async function scrub(context: AppContext, ref: StackRef | null): Promise<boolean> {
  const stack = ref && (await context.stacks.find(ref));
  if (ref && !stack) throw new CommandRefusedError(`there is no stack ${formatStackRef(ref)}`);
  const { checked, damaged, damagedArchives, damagedSegments, repaired, unrepaired, unread } = await checkDocuments(
    context,
    stack?.id ?? null,
  );
  console.log(`Checked ${checked} documents: ${damaged} damaged, ${repaired} of them repaired.`);
  for (const id of unrepaired) {
    const owner = await context.documentChecks.findOwner(id);
    if (owner) console.log(`Damaged: ${formatStackRef(owner)}, version ${owner.stackVersion ?? 0} (checkpoint ${id})`);
  }
  for (const id of damagedSegments) {
    const owner = await context.eventSegments.findOwner(id);
    if (owner) console.log(`Damaged: ${formatStackRef(owner)}, events of update ${owner.updateId} (segment ${id})`);
  }
  for (const id of damagedArchives) {
    const pack = await context.policyArchives.describe(id);
    if (pack !== null) console.log(`Damaged: policy pack ${pack} (archive ${id})`);
  }
  for (const { id, error } of unread) console.log(`Not read: ${id}: ${(error as Error).message}`);
  return unrepaired.length + damagedSegments.length + damagedArchives.length + unread.length === 0;
}
