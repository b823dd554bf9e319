import type { Command } from 'commander';
import { parseHoldReason } from '../../shared/stacks/stack-hold.ts';
import { createStackHoldRepository } from '../../shared/stacks/stack-hold-repository.ts';
import { createStackRepository, type StackRow } from '../../shared/stacks/stack-repository.ts';
import type { OpenSession } from './admin-session.ts';
import { changeAction, type Work } from './audited-action.ts';
import { operator } from './operator-name.ts';
import { orRefused, refused } from './people-rules.ts';

interface HoldOptions {
  readonly organization: string;
}

const organizationOption = ['--organization <organization>', 'the organization (required)'] as const;

export function addHoldCommands(admin: Command, open: OpenSession): void {
  const hold = admin
    .command('hold')
    .description('manage legal holds, which keep versions, events, previews, secrets and given approvals of stacks');
  hold
    .command('set')
    .description('put a stack under a legal hold')
    .argument('<project/stack>')
    .requiredOption(...organizationOption)
    .requiredOption('--reason <text>', 'the reason, shown to users (required)')
    .action(changeAction(open, 'stack.hold', set));
  hold
    .command('release')
    .description('end the legal hold of a stack')
    .argument('<project/stack>')
    .requiredOption(...organizationOption)
    .action(changeAction(open, 'stack.release', release));
}

async function set(work: Work, name: string, given: HoldOptions & { readonly reason: string }): Promise<void> {
  const stack = await lockStack(work, name, given);
  const reason = orRefused(() => parseHoldReason(given.reason));
  await createStackHoldRepository(work.tx).set(stack.id, { by: operator(), reason });
  work.say(`No version, event, preview, secret or given approval of stack ${name} is deleted any more.`);
}

async function release(work: Work, name: string, given: HoldOptions): Promise<void> {
  const stack = await lockStack(work, name, given);
  const holds = createStackHoldRepository(work.tx);
  if (await holds.find(stack.id)) await holds.release(stack.id);
  else work.unchanged();
  work.say(`Stack ${name} is under no legal hold.`);
}

/** Throws CommandRefusedError. */
async function lockStack(work: Work, name: string, { organization }: HoldOptions): Promise<StackRow> {
  const [project = '', stack = '', ...rest] = name.split('/');
  const found = rest.length > 0 ? null : await createStackRepository(work.tx).lock({ organization, project, stack });
  if (!found) throw refused(`there is no stack ${JSON.stringify(name)} in ${organization}: name it as project/stack`);
  return found;
}
