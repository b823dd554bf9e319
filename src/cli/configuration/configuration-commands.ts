import { writeFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { findCliLogin } from '../../shared/platform/config/cli-login.ts';
import { exitCodeOf, onEndSignal } from '../../shared/platform/lifecycle/end-signals.ts';
import type { CommandRun } from '../command-run.ts';
import { collect, toCount } from '../option-values.ts';
import { jsonOption, printResult } from '../output/outputs.ts';
import { applyPlan } from './apply-plan.ts';
import { ConfigurationError } from './configuration-error.ts';
import { confirm } from './confirmation.ts';
import { type Labels, titleOf } from './document.ts';
import { exportDocuments } from './export-documents.ts';
import { OrganizationApi } from './organization-api.ts';
import { type OrganizationPlan, planOrganization } from './plan.ts';
import { countsOf, planJson, planLines } from './print-plan.ts';
import { readDocuments } from './read-documents.ts';

interface ServerOptions {
  readonly url?: string;
  readonly token?: string;
}

interface PlanOptions extends ServerOptions {
  readonly file: readonly string[];
  readonly organization?: string;
  readonly prune?: true;
  readonly deleteOrganizations?: true;
  readonly selector?: Labels;
  readonly json?: true;
  readonly detailedExitcode?: true;
}

interface ApplyOptions extends PlanOptions {
  readonly yes?: true;
  readonly parallel: number;
}

function addServerOptions(command: Command): Command {
  return command
    .option('--url <url>', 'server; by default HOLDFAST_URL, PULUMI_BACKEND_URL, or the login of the Pulumi CLI')
    .option('--token <token>', 'API token of an admin; by default PULUMI_ACCESS_TOKEN, or the login of the Pulumi CLI');
}

function addPlanOptions(command: Command): Command {
  return addServerOptions(
    command
      .requiredOption('-f, --file <path>', 'file or folder of YAML documents, or - for stdin; repeatable', collect)
      .option('--organization <name>', 'organization of documents that name none')
      .option('--prune', 'delete objects that were applied with the labels of --selector and are no longer declared')
      .option('--delete-organizations', 'with --prune, also delete organizations that have no stacks and policy packs')
      .option('-l, --selector <labels>', 'NAME=VALUE, several separated by commas', toLabels)
      .option(...jsonOption),
  );
}

export function addPlanCommand(command: Command, run: CommandRun): void {
  addPlanOptions(command)
    .option('--detailed-exitcode', 'exit with 2 if there are changes')
    .action(async (options: PlanOptions) => {
      const plans = await makePlans(options);
      printResult('plan', planJson(plans), { json: options.json, text: textOf(plans) });
      if (options.detailedExitcode && hasChanges(plans)) run.exitCode = 2;
    });
}

export function addApplyCommand(command: Command, run: CommandRun): void {
  addPlanOptions(command)
    .option('--yes', 'do not ask')
    .option('--parallel <count>', 'calls at once', toCount, 8)
    .action(async (options: ApplyOptions) => {
      const plans = await makePlans(options);
      let done = 0;
      const refused: string[] = [];
      const printJson = () =>
        printResult('apply', { ...planJson(plans), applied: done, refused }, { json: true, text: '' });
      const isAsking = hasChanges(plans) && !options.yes;
      if (!options.json) console.log(textOf(plans));
      else if (isAsking) console.error(textOf(plans));
      const answer = isAsking ? await ask() : 'yes';
      if (answer !== 'yes') {
        run.exitCode = answer === 'interrupted' ? exitCodeOf('SIGINT') : 1;
        if (options.json) printJson();
        return console.error('holdfast: nothing was changed');
      }
      const ending = stopOnSignal();
      try {
        for (const plan of plans)
          refused.push(
            ...(await applyPlan(plan, {
              ...{ parallel: options.parallel, stop: ending.stop, onDone: () => void done++ },
            })),
          );
      } finally {
        ending.forget();
        if (options.json) printJson();
        else if (hasChanges(plans)) console.log(`Applied ${done} of ${total(plans)} changes.`);
        for (const each of refused) console.error(`holdfast: ${each}`);
      }
      if (refused.length > 0) run.exitCode = 1;
      if (ending.stop.aborted) run.exitCode = exitCodeOf(ending.stop.reason);
    });
}

export function addExportConfigCommand(command: Command): void {
  addServerOptions(command)
    .requiredOption('--organization <name>', 'organization to export')
    .option('--to <file>', 'file to write; by default, the documents are printed')
    .action(async ({ organization, to, ...server }: ServerOptions & { organization: string; to?: string }) => {
      const documents = await Array.fromAsync(exportDocuments(new OrganizationApi(findCliLogin(server), organization)));
      if (to === undefined) console.log(documents.join('').trimEnd());
      else {
        await writeFile(to, documents.join(''));
        console.log(`Wrote ${documents.length} documents to ${to}.`);
      }
    });
}

async function makePlans(options: PlanOptions): Promise<OrganizationPlan[]> {
  const { deleteOrganizations, file, organization, prune, selector = {} } = options;
  // Without labels, the objects of every other configuration would be deleted.
  if (prune && Object.keys(selector).length === 0) throw new ConfigurationError('--prune needs --selector NAME=VALUE');
  const login = findCliLogin(options);
  const documents = await readDocuments(file, { organization });
  if (prune) {
    const other = documents.find(({ labels }) =>
      Object.entries(selector).some(([name, value]) => labels[name] !== value),
    );
    if (other)
      throw new ConfigurationError(
        `${other.locate()}: ${titleOf(other)} lacks the labels of --selector, so it would never be pruned`,
      );
  }
  const organizations = new Set([
    ...documents.map((each) => each.organization),
    ...(organization ? [organization] : []),
  ]);
  const plans: OrganizationPlan[] = [];
  for (const name of [...organizations].toSorted()) {
    const own = documents.filter((each) => each.organization === name);
    plans.push(
      await planOrganization(new OrganizationApi(login, name), own, {
        prune: prune ? selector : null,
        deletesOrganizations: deleteOrganizations === true,
      }),
    );
  }
  return plans;
}

function textOf(plans: readonly OrganizationPlan[]): string {
  return [...planLines(plans)].join('\n');
}

function total(plans: readonly OrganizationPlan[]): number {
  const { change, create, delete: deleted } = countsOf(plans);
  return create + change + deleted;
}

function hasChanges(plans: readonly OrganizationPlan[]): boolean {
  return total(plans) > 0;
}

/** SIGINT and SIGTERM abort `stop`; a second signal ends the process. */
function stopOnSignal(): { readonly stop: AbortSignal; forget(): void } {
  const controller = new AbortController();
  const forget = onEndSignal((signal) => controller.abort(signal));
  return { stop: controller.signal, forget };
}

function ask(): ReturnType<typeof confirm> {
  const { stderr, stdin } = process;
  if (!stdin.isTTY) throw new ConfigurationError('There is no terminal to ask at: give --yes');
  return confirm('Make these changes? [y/N] ', { input: stdin, output: stderr });
}

function toLabels(text: string): Labels {
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw new InvalidArgumentError('Labels have the form NAME=VALUE.');
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}
