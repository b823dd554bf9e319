import { readFile, writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import type { AppContext } from '../../shared/context.ts';
import { listSource, MovingError, type SourceStack } from '../../shared/diy/diy-layout.ts';
import type { Folder } from '../../shared/platform/blobs/folder.ts';
import { bucketDefaults, openFolder } from '../../shared/platform/blobs/open-folder.ts';
import { AdminSession } from '../admin/admin-session.ts';
import { Progress } from '../backup/progress.ts';
import type { CommandRun } from '../command-run.ts';
import { isSelected, messageOf, type PlannedStack, planStack, type StackPlan } from './import-plan.ts';
import { collect, forEachStack, toCount } from './moving-options.ts';
import { alignColumns, counted, formatBytes } from './moving-report.ts';
import { assertWritable, StackImporter } from './stack-importer.ts';
import { verifyStack } from './verify-import.ts';

interface ImportOptions {
  readonly from: string;
  readonly organization: string;
  readonly stack?: readonly string[];
  readonly plan?: string;
  readonly parallel: number;
  readonly apply?: true;
  readonly verify?: true;
  readonly json?: true;
}

/** Written with `--plan`. */
interface PlanFile {
  readonly format: 1;
  readonly from: string;
  readonly organization: string;
  readonly stacks: readonly PlannedStack[];
  /** Files that are in neither layout of the source. */
  readonly strays: readonly string[];
}

interface ImportCall {
  readonly context: AppContext;
  readonly folder: Folder;
  readonly organization: { readonly id: string; readonly name: string };
  readonly options: ImportOptions;
  readonly stacks: readonly SourceStack[];
  readonly strays: readonly string[];
}

/** Adds the options of `holdfast import`. */
export function addImportOptions(command: Command, run: CommandRun): void {
  command
    .requiredOption('--from <place>', 'file://DIR or s3://BUCKET/PREFIX, as for `pulumi login`')
    .requiredOption('--organization <name>', 'organization that gets the stacks')
    .option('--stack <pattern>', 'only these: PROJECT/STACK, with * for any characters; repeatable', collect)
    .option('--plan <file>', 'write the plan as JSON; with --apply, import only the stacks that it lists')
    .option('--apply', 'import; without it, only the plan is printed')
    .option('--verify', 'compare what was imported with the source; exits with 1 if something differs')
    .option('--parallel <count>', 'stacks at once', toCount, 4)
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      '\nCall it again after an interruption, and for a second pass: it goes on where it was. See docs/moving.md.',
    )
    .action((options: ImportOptions) => runImport(run, options));
}

async function runImport(run: CommandRun, options: ImportOptions): Promise<void> {
  if (options.apply && options.verify) throw new MovingError('Give --apply or --verify, one after the other');
  const session = new AdminSession(run.loadConfig());
  const folder = await openFolder(options.from, bucketDefaults(session.config));
  try {
    const { stacks, strays } = await listSource(folder);
    if (stacks.length === 0)
      throw new MovingError(`There are no stacks in ${options.from}: it needs a folder .pulumi/stacks`);
    const selected = stacks.filter((stack) => isSelected(stack, options.stack ?? []));
    await session.withContext(async (context) => {
      const organization = await context.identity.findOrganization(options.organization);
      if (!organization)
        throw new MovingError(
          `There is no organization ${JSON.stringify(options.organization)}: see holdfast admin --help`,
        );
      if (options.apply) await assertWritable(context.db);
      const call = { context, folder, organization, options, stacks: selected, strays };
      const isComplete = options.verify ? await verify(call) : await planOrImport(call);
      if (!isComplete) run.exitCode = 1;
    });
  } finally {
    await folder.close();
  }
}

async function planOrImport(call: ImportCall): Promise<boolean> {
  const { context, folder, options, strays } = call;
  const listed = options.apply && options.plan !== undefined ? await readPlannedNames(options.plan, options) : null;
  const stacks = listed === null ? call.stacks : call.stacks.filter(({ name }) => listed.has(name));
  const plans = await forEachStack(stacks, options.parallel, 'planned stacks', (stack) =>
    planStack({ context, folder, organization: options.organization }, stack),
  );
  const plan: PlanFile = {
    ...{ format: 1, from: options.from, organization: options.organization, strays },
    stacks: plans.map(({ planned }) => planned),
  };
  if (!options.apply) {
    if (options.plan !== undefined) await writeFile(options.plan, `${JSON.stringify(plan, null, 2)}\n`);
    console.log(options.json ? JSON.stringify(plan) : describePlan(plan));
    return true;
  }
  return importAll(call, plans);
}

async function importAll(call: ImportCall, plans: readonly StackPlan[]): Promise<boolean> {
  const { options } = call;
  const importer = new StackImporter({ ...call, from: options.from });
  const total = plans.reduce((sum, { planned }) => sum + planned.versions, 0);
  const progress = new Progress();
  let done = 0;
  const results = await forEachStack(plans, options.parallel, null, async (plan) => {
    const { source: stack, action, notes } = plan.planned;
    if (action === 'leave out') return { stack, versions: 0, leftOut: notes };
    try {
      const { leftOut, versions } = await importer.import(plan, () => progress.report('versions', ++done, total));
      return { stack, versions, leftOut: [...notes, ...leftOut] };
    } catch (error) {
      return { stack, versions: 0, leftOut: [`interrupted: ${messageOf(error)}`] };
    }
  });
  const versions = results.reduce((sum, result) => sum + result.versions, 0);
  const incomplete = results.filter(({ leftOut }) => leftOut.length > 0);
  const changed = results.filter((result) => result.versions > 0).length;
  const lines = [
    ...incomplete.flatMap(({ leftOut, stack }) => leftOut.map((reason) => `${stack}: ${reason}`)),
    `Imported ${counted(versions, 'version')} of ${counted(changed, 'stack')} into ${options.organization}.`,
    ...(incomplete.length === 0 ? [] : [`${counted(incomplete.length, 'stack')} not, or not completely: see above.`]),
  ];
  console.log(options.json ? JSON.stringify({ stacks: results }) : lines.join('\n'));
  return incomplete.length === 0;
}

async function verify({ context, folder, options, stacks }: ImportCall): Promise<boolean> {
  const results = await forEachStack(stacks, options.parallel, 'verified stacks', (stack) =>
    verifyStack({ context, folder, organization: options.organization }, stack),
  );
  const different = results.filter(({ problems }) => problems.length > 0);
  const [versions, bytes] = [
    results.reduce((sum, result) => sum + result.versions, 0),
    results.reduce((sum, result) => sum + result.bytes, 0),
  ];
  const lines = [
    ...results.flatMap(({ leftOut, source }) => leftOut.map((reason) => `${source}: left out: ${reason}`)),
    ...results.flatMap(({ problems, source }) => problems.map((problem) => `${source}: ${problem}`)),
    `Compared ${counted(results.length, 'stack')} and ${counted(versions, 'version')}, ${formatBytes(bytes)} of states: ${
      different.length === 0 ? 'no differences' : `${counted(different.length, 'stack')} with differences`
    }.`,
  ];
  console.log(options.json ? JSON.stringify({ stacks: results }) : lines.join('\n'));
  return different.length === 0;
}

function describePlan({ organization, stacks, strays }: PlanFile): string {
  const rows = stacks.map(({ action, bytes, notes, secretsProvider, source, versions }) => [
    ...[source, action, String(versions), formatBytes(bytes), secretsProvider ?? '-', notes.join('; ')],
  ]);
  const totals = stacks.reduce(
    (sum, each) => ({ versions: sum.versions + each.versions, bytes: sum.bytes + each.bytes }),
    {
      versions: 0,
      bytes: 0,
    },
  );
  const count = (action: PlannedStack['action']): number => stacks.filter((each) => each.action === action).length;
  const keepers = Map.groupBy(
    stacks.filter(({ action, secretsProvider }) => action !== 'leave out' && secretsProvider !== null),
    ({ secretsProvider }) => secretsProvider,
  );
  const secrets = [...keepers].map(([type, users]) => `${type} (${counted(users.length, 'stack')})`);
  return [
    ...alignColumns([['STACK', 'ACTION', 'VERSIONS', 'SIZE', 'SECRETS', 'NOTES'], ...rows]),
    ...strays.map((name) => `${name} is left out: it is not in the layout of this folder (pulumi state upgrade)`),
    `${organization}: ${count('create')} to create, ${count('continue')} to continue, ${count('none')} complete, ` +
      `${count('leave out')} left out; ${counted(totals.versions, 'version')}, ${formatBytes(totals.bytes)}.`,
    ...(secrets.length === 0
      ? []
      : [
          `Secrets stay encrypted as they are, by ${secrets.join(', ')}: the CLI needs its passphrases and KMS keys as before. ` +
            '`pulumi stack change-secrets-provider default` moves a stack to the keys of the server.',
        ]),
    'Nothing was changed. Import with --apply.',
  ].join('\n');
}

async function readPlannedNames(file: string, options: ImportOptions): Promise<ReadonlySet<string>> {
  const plan = JSON.parse(await readFile(file, 'utf8')) as Partial<PlanFile>;
  if (plan.format !== 1 || !plan.stacks) throw new MovingError(`${file} is not a plan`);
  if (plan.from !== options.from || plan.organization !== options.organization)
    throw new MovingError(`${file} is a plan from ${plan.from} to ${plan.organization}`);
  return new Set(plan.stacks.map(({ source }) => source));
}
