import { Command, CommanderError } from 'commander';
import { holdfastVersion, loadConfig } from '../shared/platform/config/config.ts';
import { AppError, OperatorError } from '../shared/platform/errors/errors.ts';
import type { CommandRun } from './command-run.ts';
import { checkHealth } from './healthz.ts';

/** Columns of a help text that does not go to a terminal. */
const helpColumns = 110;

/**
 * Runs the command that `words` name. Returns the exit code: 1 when it failed or was refused, 2 when the command line is wrong,
 * undefined when the process goes on to serve. Each command loads its own code when it runs.
 */
export async function runCommandLine(words: readonly string[], load = loadConfig): Promise<number | undefined> {
  const run: CommandRun = { loadConfig: load, exitCode: 0 };
  try {
    // A container asks this every few seconds.
    if (words.length === 1 && words[0] === '--healthz') return await checkHealth(run.loadConfig());
    // `holdfast help admin list` is `holdfast admin list --help`, and each level of commands is loaded on the way there.
    const [first, ...rest] = words;
    await createProgram(run).parseAsync(first === 'help' ? [...rest, '--help'] : words, { from: 'user' });
    return run.exitCode;
  } catch (error) {
    // Its message has been printed.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    // A sentence for what an operator can mend; all there is for a fault of ours.
    const isPlain = error instanceof OperatorError || error instanceof AppError;
    console.error(isPlain ? `holdfast: ${error.message}` : error);
    return 1;
  }
}

function createProgram(run: CommandRun): Command {
  const program = new Command('holdfast')
    .description(`Holdfast ${holdfastVersion}: state backend for the Pulumi CLI`)
    .usage('<command>')
    .version(holdfastVersion, '--version', 'print the version')
    .option('--healthz', 'exit with 0 when the server of these settings is healthy, else with 1')
    // Commands may have options of the same names.
    .enablePositionalOptions()
    .exitOverride()
    .showHelpAfterError()
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
    .description('API and workers in one process; with its own Postgres unless HOLDFAST_DATABASE_URL is set')
    .action(async () => (await import('./serve.ts')).serve(run, 'server'));
  program
    .command('api')
    .description('an API replica; needs HOLDFAST_REDIS_URL and workers')
    .action(async () => (await import('./serve.ts')).serve(run, 'api'));
  program
    .command('worker')
    .description('a worker process; needs HOLDFAST_REDIS_URL')
    .action(async () => (await import('./serve.ts')).serve(run, 'worker'));
  program
    .command('create-bucket')
    .description('create the bucket HOLDFAST_S3_BUCKET unless it exists')
    .action(async () => (await import('./create-bucket.ts')).createBucket(run.loadConfig()));
  program
    .command('migrate')
    .description('bring the database up to this release')
    .action(async () => (await import('./migrate.ts')).migrateDatabase(run.loadConfig()));
  program
    .command('admin')
    .description('organizations, users, tokens, keys, quotas and stored states')
    .usage('<command>');
  program.hook('preSubcommand', async (_, command) => {
    if (command.name() === 'admin') (await import('./admin/admin-commands.ts')).addAdminCommands(command, run);
  });
  return program;
}

/** A command in the list of its parent: options are in its own help. */
function termOf(command: Command): string {
  const argumentsOf = command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  );
  return [command.name(), ...argumentsOf].join(' ');
}
