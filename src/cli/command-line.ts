import { Argument, type Command, CommanderError, InvalidArgumentError } from 'commander';
import { type Config, holdfastVersion, loadConfig } from '../shared/platform/config/config.ts';
import { loadSettingsFile } from '../shared/platform/config/settings-file.ts';
import { stackOf } from '../shared/platform/errors/causes.ts';
import { AppError, isFileError, OperatorError } from '../shared/platform/errors/errors.ts';
import type { CommandRun } from './command-run.ts';
import { type Shell, shells } from './completion/completion-scripts.ts';
import { runsAtFencedSite } from './fenced-site.ts';
import { GuidingCommand } from './guiding-command.ts';
import { checkHealth } from './healthz.ts';

/** The width for a help text that is not printed to a terminal. */
const helpColumns = 110;

/**
 * Returns the exit code: 1 if the command failed or was rejected, 2 if the command line is invalid (1 for `plan`, whose 2 means changes),
 * undefined if the process continues as a server. Each command loads its code when it runs.
 */
export async function runCommandLine(given: readonly string[], load = loadConfig): Promise<number | undefined> {
  let args: readonly string[] = [];
  try {
    args = takeSettingsFile(given);
    const run: CommandRun = { loadConfig: load, exitCode: 0 };
    // A short path, because a container runs this every few seconds.
    if (args.length === 1 && args[0] === '--healthz') return await checkHealth(run.loadConfig());
    // Run `holdfast help admin list` as `holdfast admin list --help`, which loads each level of commands.
    const [first, ...rest] = args;
    await createProgram(run).parseAsync(first === 'help' ? [...rest, '--help'] : args, { from: 'user' });
    return run.exitCode;
  } catch (error) {
    // commander has printed the message.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : args[0] === 'plan' ? 1 : 2;
    // Only the message for problems that an operator can fix; the stack trace for bugs.
    const isPlain = error instanceof OperatorError || error instanceof AppError || isFileError(error);
    console.error(isPlain ? `holdfast: ${(error as Error).message}` : stackOf(error));
    return 1;
  }
}

/** Takes `--settings FILE` or `--settings=FILE` from the beginning of the command line, and reads the file. Throws SettingsFileError. */
function takeSettingsFile(given: readonly string[]): readonly string[] {
  const [first = '', second] = given;
  const joined = /^--settings=(.+)$/s.exec(first)?.[1];
  const file = joined ?? (first === '--settings' ? second : undefined);
  if (file === undefined) return given;
  loadSettingsFile(file);
  return given.slice(joined === undefined ? 2 : 1);
}

/** Refuses the option where takeSettingsFile has not read it. */
function refuseSettingsFile(): never {
  throw new InvalidArgumentError('One file of settings is read, and only as the first option.');
}

function runWith(config: Config, args: readonly string[]): Promise<number | undefined> {
  return runCommandLine(args, () => config);
}

/** The loaders by name; they run when the command does. */
const parts: Readonly<Record<string, (command: Command, run: CommandRun) => Promise<void>>> = {
  admin: async (command, run) => (await import('./admin/admin-commands.ts')).addAdminCommands(command, run),
  approve: async (command) => (await import('./remote/remote-commands.ts')).addApproveCommand(command),
  apply: async (command, run) =>
    (await import('./configuration/configuration-commands.ts')).addApplyCommand(command, run),
  backup: async (command, run) => (await import('./backup/backup-commands.ts')).addBackupCommands(command, run),
  blobs: async (command, run) => (await import('./blobs/blobs-commands.ts')).addBlobsCommands(command, run),
  bundle: async (command, run) => (await import('./bundle/bundle-commands.ts')).addBundleCommands(command, run),
  debug: async (command, run) => (await import('./debug/debug-commands.ts')).addDebugCommands(command, run),
  drain: async (command) => (await import('./remote/remote-commands.ts')).addDrainCommand(command),
  doctor: async (command, run) => (await import('./doctor/doctor-command.ts')).addDoctorOptions(command, run),
  export: async (command, run) => (await import('./moving/export-commands.ts')).addExportOptions(command, run),
  'export-config': async (command) =>
    (await import('./configuration/configuration-commands.ts')).addExportConfigCommand(command),
  import: async (command, run) => (await import('./moving/import-commands.ts')).addImportOptions(command, run),
  plan: async (command, run) =>
    (await import('./configuration/configuration-commands.ts')).addPlanCommand(command, run),
  setup: async (command) => (await import('./setup/setup-command.ts')).addSetupOptions(command, runWith),
  top: async (command) => (await import('./remote/top-command.ts')).addTopCommand(command),
  wait: async (command) => (await import('./remote/remote-commands.ts')).addWaitCommand(command),
  'support-bundle': async (command, run) =>
    (await import('./support/support-bundle-command.ts')).addSupportBundleOptions(command, run),
};

/** The program with all commands and subcommands. */
export async function createWholeProgram(run: CommandRun): Promise<Command> {
  const program = createProgram(run);
  for (const command of program.commands) await parts[command.name()]?.(command, run);
  return program;
}

function createProgram(run: CommandRun): Command {
  const program = new GuidingCommand('holdfast')
    .description(`Holdfast ${holdfastVersion}: state backend for the Pulumi CLI`)
    .usage('<command>')
    .version(holdfastVersion, '--version', 'print the version')
    .option('--settings <file>', 'read settings from this file, too; only as the first option', refuseSettingsFile)
    .option('--healthz', 'exit with 0 if the server with these settings is healthy, otherwise with 1')
    // Commands may have options of the same names.
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => console.log(text.trimEnd()),
      writeErr: (text) => console.error(text.trimEnd()),
      outputError: (text, write) => write(text.replace(/^error: /, 'holdfast: ')),
      getOutHelpWidth: () => process.stdout.columns ?? helpColumns,
      getErrHelpWidth: () => process.stderr.columns ?? helpColumns,
    })
    .configureHelp({ subcommandTerm: termOf })
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print help for a command')
    .addHelpText('after', '\nSettings are environment variables; docs/settings.md lists them.');
  program
    .command('server')
    .description('run API and workers in one process, with its own Postgres unless HOLDFAST_DATABASE_URL is set')
    .option('--migrate', 'migrate the database first, as an embedded server does')
    .action(async (options: { migrate?: true }) => (await import('./serve.ts')).serve(run, 'server', options));
  program
    .command('api')
    .description('run an API replica; needs HOLDFAST_REDIS_URL and workers')
    .action(async () => (await import('./serve.ts')).serve(run, 'api'));
  program
    .command('worker')
    .description('run a worker; needs HOLDFAST_REDIS_URL')
    .action(async () => (await import('./serve.ts')).serve(run, 'worker'));
  program
    .command('setup')
    .description('write a settings file: ask at a terminal, otherwise use options and the environment');
  program
    .command('doctor')
    .description('check settings, stores, keys, disk and public URL; exits with 1 if something fails');
  program
    .command('support-bundle')
    .description('write a file for support: versions, settings, findings of the doctor, without secrets');
  program
    .command('debug')
    .description('change the log level of running processes on this machine, and profile them')
    .usage('<command>');
  program
    .command('create-bucket')
    .description('create the bucket HOLDFAST_S3_BUCKET if it does not exist')
    .action(async () => (await import('./create-bucket.ts')).createBucket(run.loadConfig()));
  program
    .command('migrate')
    .description('migrate the database to this release')
    .option('--app-role <name>', 'also grant this Postgres role the privileges that servers need')
    .action(async (options: { appRole?: string }) =>
      (await import('./migrate.ts')).migrateDatabase(run.loadConfig(), options),
    );
  program
    .command('upgrade-database')
    .description('upgrade the embedded database to the Postgres of this release, while no server runs')
    .option('--old-postgres <folder>', 'folder with the programs of the Postgres that wrote the database')
    .action(async (options: { oldPostgres?: string }) =>
      (await import('./upgrade-database.ts')).upgradeEmbeddedDatabase(run.loadConfig(), options),
    );
  program
    .command('admin')
    .description('manage organizations, users, tokens, keys, quotas and stored states')
    .usage('<command>');
  program.command('backup').description('create, verify, restore and delete backups').usage('<command>');
  program.command('blobs').description('move the blob store while servers run').usage('<command>');
  program
    .command('import')
    .description(
      'import stacks with their history from a service (`https://…`), a DIY backend (`file://…`, `s3://…`) or an archive',
    );
  program
    .command('export')
    .description('export the stacks of an organization to a DIY backend (`file://…`, `s3://…`) or an archive');
  program.command('plan').description('show what `holdfast apply` would change');
  program.command('apply').description('make an organization match its YAML documents, through the API');
  program.command('export-config').description('write an organization as YAML documents');
  program.command('top').description('watch processes, queues and running updates, as a site admin, through the API');
  program.command('wait').description('wait until a stack has no running update, through the API');
  program.command('approve').description('approve the runs of a commit, through the API');
  program.command('drain').description('drain the running update of a stack, through the API');
  program
    .command('schema')
    .description("print the JSON Schema of YAML documents, or of a command's --json output")
    .argument('[command...]', 'its words, such as admin token list')
    .option('--list', 'list the schemas')
    .action(async (args: string[], options: { list?: true }) =>
      (await import('./output/schema-command.ts')).printSchema(args, options),
    );
  program
    .command('bundle')
    .description('show how far the break-glass bundle is behind, and import updates made in it')
    .usage('<command>');
  program
    .command('completion')
    .description('print a script for shell completion')
    .addArgument(new Argument('<shell>').choices(shells))
    .action(async (shell: Shell) => {
      const { completionScript } = await import('./completion/completion-scripts.ts');
      console.log(completionScript(await createWholeProgram(run), shell));
    });
  program.hook('preAction', (_, command) => {
    run.isForFencedSite = runsAtFencedSite(command);
  });
  program.hook('preSubcommand', (_, command) => parts[command.name()]?.(command, run));
  return program;
}

/** Formats a command for the list of its parent, without its options. */
function termOf(command: Command): string {
  const argumentsOf = command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  );
  return [command.name(), ...argumentsOf].join(' ');
}
