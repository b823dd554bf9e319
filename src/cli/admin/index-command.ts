import type { Command } from 'commander';
import type { AppContext } from '../../shared/context.ts';
import { createDueIndexRepository } from '../../shared/search/due-index-repository.ts';
import { formatStackRef, parseQualifiedName } from '../../shared/stacks/names.ts';
import { CommandRefusedError, type OpenSession } from './admin-session.ts';

const stacksPerPage = 500;

interface RebuildOptions {
  readonly all?: true;
  readonly versions?: true;
}

export function addIndexCommand(admin: Command, open: OpenSession): void {
  const index = admin.command('index').description('manage the index of the resources in states');
  index
    .command('rebuild')
    .description('reindex the newest state of a stack')
    .argument('[organization/project/stack]')
    .option('--all', 'schedule all stacks; workers reindex them one by one, after stacks with new states')
    .option('--versions', 'also index the changes of each version; reads all their states')
    .addHelpText('after', '\nIt also needs the settings of the blob store.')
    .action((name: string | undefined, options: RebuildOptions) =>
      open().withContext((context) => rebuild(context, name, options)),
    );
}

async function rebuild(
  context: AppContext,
  name: string | undefined,
  { all, versions }: RebuildOptions,
): Promise<void> {
  if ((name === undefined) === (all === undefined)) throw new CommandRefusedError('name a stack, or use --all');
  if (name === undefined) {
    if (versions) throw new CommandRefusedError('--versions is for one stack');
    console.log(`${await noteAll(context)} stacks will be reindexed by workers.`);
    return;
  }
  const ref = parseQualifiedName(name);
  const stack = ref && (await context.stacks.find(ref));
  if (!stack)
    throw new CommandRefusedError(`there is no stack ${JSON.stringify(name)}; name it as organization/project/stack`);
  const done = await context.indexer.rebuild(stack.id, { allVersions: versions === true });
  console.log(`${formatStackRef(stack)} is indexed: ${done.versions} versions, ${done.bytes} bytes read.`);
}

async function noteAll({ db }: AppContext): Promise<number> {
  const rows = createDueIndexRepository(db);
  let stacks = 0;
  for (let after: string | null = null; ; ) {
    const page: { readonly last: string; readonly stacks: number } | null = await rows.notePage(after, stacksPerPage);
    if (page === null) return stacks;
    stacks += page.stacks;
    after = page.last;
  }
}
