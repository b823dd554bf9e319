import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { findCliLogin } from '../../shared/platform/config/cli-login.ts';
import { OperatorError } from '../../shared/platform/errors/errors.ts';
import { formatStackRef, parseQualifiedName, type StackRef } from '../../shared/stacks/names.ts';
import { approvableKinds } from '../../shared/updates/approvals/approvals.ts';
import { parseCommit } from '../../shared/updates/commit.ts';
import { OrganizationApi } from '../configuration/organization-api.ts';
import { toCount } from '../option-values.ts';

class RemoteError extends OperatorError {
  override readonly name = 'RemoteError';
}

interface ServerOptions {
  readonly url?: string;
  readonly token?: string;
}

interface ApproveOptions extends ServerOptions {
  readonly reason: string;
  readonly kind: string;
  readonly minutes: number;
}

interface WaitOptions extends ServerOptions {
  readonly seconds: number;
  readonly every: number;
}

interface Running {
  readonly updateId: string;
  readonly kind: string;
}

/** Adds the common options of `wait`, `approve` and `drain`, which call the API from any machine. */
function addServerOptions(command: Command): Command {
  return command
    .argument('<organization/project/stack>', 'the stack', toStack)
    .option('--url <url>', 'server; by default HOLDFAST_URL, PULUMI_BACKEND_URL, or the login of the Pulumi CLI')
    .option('--token <token>', 'API token; by default PULUMI_ACCESS_TOKEN, or the login of the Pulumi CLI');
}

export function addWaitCommand(command: Command): void {
  addServerOptions(command)
    .option('--seconds <count>', 'how long, at most', toCount, 3600)
    .option('--every <seconds>', 'time between two calls', toCount, 5)
    .action(async (stack: StackRef, options: WaitOptions) => {
      const api = openStack(stack, options);
      const until = performance.now() + options.seconds * 1000;
      for (;;) {
        const running = await findRunning(api);
        if (running === null) return console.log(`No update of ${formatStackRef(stack)} is running.`);
        const leftMs = until - performance.now();
        if (leftMs <= 0) throw new RemoteError(`the ${running.kind} ${running.updateId} still runs`);
        await sleep(Math.min(options.every * 1000, leftMs));
      }
    });
}

export function addApproveCommand(command: Command): void {
  addServerOptions(command)
    .argument('<commit>', 'the full hash of the commit', toCommit)
    .requiredOption('--reason <text>', 'for the record (required)')
    .addOption(new Option('--kind <kind>', 'what is run').choices(approvableKinds).default('update'))
    .option('--minutes <count>', 'how long', toCount, 60)
    .action(async (stack: StackRef, commit: string, { kind, minutes, reason, ...server }: ApproveOptions) => {
      const api = openStack(stack, server);
      const { approvals } = (await api.get(`approvals?commit=${commit}`)).json as {
        approvals: { id: string; kind: string; commit: string }[];
      };
      const asked = approvals.find((each) => each.commit === commit && each.kind === kind);
      if (!asked)
        throw new RemoteError(`nobody has requested an approval of ${commit} (${kind}) on ${formatStackRef(stack)}`);
      await api.post(`approvals/${asked.id}`, { reason, minutes });
      console.log(`Approved: runs of ${commit} (${kind}) on ${formatStackRef(stack)} pass for ${minutes} minutes.`);
    });
}

export function addDrainCommand(command: Command): void {
  addServerOptions(command)
    .option('--reason <text>', 'shown to the user who runs the update', '')
    .action(async (stack: StackRef, { reason, ...server }: ServerOptions & { readonly reason: string }) => {
      const api = openStack(stack, server);
      const running = await findRunning(api);
      if (running === null) throw new RemoteError(`no update of ${formatStackRef(stack)} is running`);
      await api.post(`${running.kind}/${running.updateId}/drain`, { reason });
      console.log(`The ${running.kind} ${running.updateId} starts no new steps.`);
    });
}

function openStack({ organization, project, stack }: StackRef, server: ServerOptions): OrganizationApi {
  const names = [organization, project, stack].map(encodeURIComponent).join('/');
  return new OrganizationApi(findCliLogin(server), organization, `stacks/${names}`);
}

async function findRunning(api: OrganizationApi): Promise<Running | null> {
  const { activeUpdate, currentOperation } = (await api.get('')).json as {
    activeUpdate?: string;
    currentOperation?: { kind: string };
  };
  return activeUpdate && currentOperation ? { updateId: activeUpdate, kind: currentOperation.kind } : null;
}

function toCommit(text: string): string {
  try {
    return parseCommit(text.toLowerCase());
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}.`);
  }
}

function toStack(text: string): StackRef {
  const ref = parseQualifiedName(text);
  if (!ref) throw new InvalidArgumentError('It is not of the form organization/project/stack.');
  return ref;
}
