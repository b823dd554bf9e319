import type { Command } from 'commander';
import type { AppContext } from '../../shared/context.ts';
import { createStateIndexRepository } from '../../shared/search/state-index-repository.ts';
import { formatStackRef, parseQualifiedName } from '../../shared/stacks/names.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';

interface RebuildOptions {
  readonly all?: true;
  readonly versions?: true;
}

/** Adds `holdfast admin index`. */
export function addIndexCommand(admin: Command, open: OpenSession): void {
  const index = admin.command('index').description('manage the index of the resources in states');
  index
    .command('rebuild')
    .description('index the newest state of a stack anew')
    .argument('[organization/project/stack]')
    .option('--all', 'note all stacks; workers index them one by one, after those with new states')
    .option('--versions', 'also what each version has changed; reads the states of all of them')
    .addHelpText('after', '\nIt needs the settings of the blob store, too.')
    .action((name: string | undefined, options: RebuildOptions) =>
      open().withContext((context) => rebuild(context, name, options)),
    );
}

async function rebuild(
  context: AppContext,
  name: string | undefined,
  { all, versions }: RebuildOptions,
): Promise<void> {
  if ((name === undefined) === (all === undefined)) throw new CommandRefusedError('name a stack, or give --all');
  if (name === undefined) {
    if (versions) throw new CommandRefusedError('--versions is for one stack');
    const rows = createStateIndexRepository(context.db);
    console.log(`${await rows.noteAll()} stacks will be indexed anew by workers.`);
    return;
  }
  const ref = parseQualifiedName(name);
  const stack = ref && (await context.stacks.find(ref));
  if (!stack)
    throw new CommandRefusedError(`there is no stack ${JSON.stringify(name)}; name it as organization/project/stack`);
  const done = await context.indexer.rebuild(stack.id, { allVersions: versions === true });
  console.log(`${formatStackRef(stack)} is indexed: ${done.versions} versions, ${done.bytes} bytes read.`);
}
