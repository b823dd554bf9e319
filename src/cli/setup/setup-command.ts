import { chownSync, existsSync } from 'node:fs';
import path from 'node:path';
import type { Command } from 'commander';
import { type Config, ConfigError, parseConfig } from '../../shared/platform/config/config.ts';
import { ensureMasterKeys, readMasterKeys } from '../../shared/platform/config/data-dir.ts';
import { isLoopback, listExposures } from '../../shared/platform/config/exposure.ts';
import {
  editSettings,
  type GivenSettings,
  giveAccess,
  parseSettings,
  readSettingsFile,
  settingsOfEnvironment,
} from '../../shared/platform/config/settings-file.ts';
import { OperatorError } from '../../shared/platform/errors/errors.ts';
import { replaceFileDurably } from '../../shared/platform/files/durable-files.ts';
import { createLogger } from '../../shared/platform/logger/logger.ts';
import { findSystemUser, type SystemUser } from '../../shared/platform/processes/system-user.ts';
import { trustAuthorities } from '../../shared/platform/tls/certificates.ts';
import { KeyRing } from '../../shared/secrets/key-ring.ts';
import { shellQuoted } from '../output/text.ts';
import { type SetupAnswers, settingFrom, settingOptions, withChanges } from './setup-answers.ts';
import {
  checkBucket,
  checkDatabase,
  checkDataDir,
  checkFiles,
  checkTlsFiles,
  fileSettings,
  withIdsOf,
} from './setup-checks.ts';
import { askForSettings, openQuestions, type Questions } from './setup-questions.ts';

/** User of the service that the packages install. */
const serviceUser = 'holdfast';
/** The folder in which the unit runs. */
const unitFolder = '/var/lib/holdfast';
const defaultFile = 'holdfast.env';

/** The setup was rejected for the reason in the message. */
class SetupRefusedError extends OperatorError {
  override readonly name = 'SetupRefusedError';
}

/** Runs another command with these settings. Returns its exit code. */
type RunWith = (config: Config, words: readonly string[]) => Promise<number | undefined>;

interface SetupOptions {
  readonly file?: string;
  readonly admin?: string;
  readonly organization?: string;
  readonly force?: true;
  readonly [flag: string]: string | true | undefined;
}

export function addSetupOptions(command: Command, runWith: RunWith): void {
  command.option('--file <file>', `the file to write (default: ${defaultFile})`);
  for (const [flags, description] of settingOptions) command.option(flags, description);
  command
    .option('--organization <name>', 'first organization in a database that is not embedded (default: holdfast)')
    .option('--admin <login>', 'first admin in a database that is not embedded')
    .option('--force', 'replace settings that the file already has')
    .addHelpText(
      'after',
      `
Every setting of the environment (HOLDFAST_…, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY) counts as an option, so no
secret must be on the command line. Nothing is written unless Postgres and the bucket can be reached.`,
    )
    .action((options: SetupOptions) => setup(runWith, options));
}

async function setup(runWith: RunWith, options: SetupOptions): Promise<void> {
  const file = path.resolve(options.file ?? defaultFile);
  const text = readSettingsFile(file) ?? '';
  const account = process.geteuid?.() === 0 ? findSystemUser(serviceUser) : null;
  const inFile = parseSettings(text);
  const before = account ? withFullPaths(inFile, unitFolder) : inFile;
  const said = withFullPaths({ ...settingsOfEnvironment(), ...settingsOfOptions(options) });
  const fixed = new Set(Object.keys(said).filter((name) => said[name] !== before[name]));
  const known: SetupAnswers = {
    settings: withChanges(before, said),
    admin: options.admin ?? null,
    organization: options.organization ?? 'holdfast',
  };
  const questions = process.stdin.isTTY && process.stdout.isTTY ? openQuestions() : null;
  try {
    const asked = questions ? await askForSettings(questions, known, fixed) : known;
    const answers = { ...asked, settings: withFullPaths({ HOLDFAST_DATA_DIR: 'data', ...asked.settings }) };
    const config = parseConfig(answers.settings);
    refuseUnsafe(config, answers);
    const content = editSettings(text, answers.settings);
    await refuseReplacing(file, before, answers.settings, options.force === true, questions);
    giveAccess(answers.settings);
    await check(config, answers.settings, account);
    makeMasterKeys(config, account);
    const owner = account && ((temporary: string): void => chownSync(temporary, 0, account.gid));
    replaceFileDurably(file, content, { mode: account ? 0o640 : 0o600, prepare: owner ?? undefined });
    console.log(content === text ? `${file} stays as it is.` : `Wrote ${file}.`);
    if (config.database.url !== null && answers.admin !== null)
      await withIdsOf(account, () => createAdmin(runWith, config, answers));
    const steps = nextSteps(config, answers, { file, isService: account !== null });
    console.log(`\nNext:\n${steps.map((step) => `  ${step}`).join('\n')}`);
  } finally {
    questions?.close();
  }
}

function settingsOfOptions(options: SetupOptions): GivenSettings {
  const given: Record<string, string> = {};
  for (const [flags, , setting] of settingOptions) {
    const flag = flags.replace(/^--| <.*$/g, '').replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    const value = options[flag];
    if (typeof value === 'string') given[setting] = settingFrom(setting, value);
  }
  return given;
}

/** Makes paths absolute: commands may run in other directories than the one that relative paths refer to. */
export function withFullPaths(settings: GivenSettings, folder = process.cwd()): GivenSettings {
  const full: Record<string, string> = { ...settings };
  for (const name of ['HOLDFAST_DATA_DIR', ...fileSettings])
    if (full[name]) full[name] = path.resolve(folder, full[name]);
  return full;
}

function refuseUnsafe(config: Config, { admin, settings }: SetupAnswers): void {
  const problems = listUnsafe(config, { publicUrl: settings['HOLDFAST_PUBLIC_URL'] !== undefined });
  if (config.database.url === null && admin !== null)
    problems.push('--admin: with the embedded database, the first start creates the user admin');
  if (settings['AWS_SESSION_TOKEN'] !== undefined)
    problems.push(
      'AWS_SESSION_TOKEN: these access keys end soon. Unset the AWS variables, or set keys that last; without keys, the role of the machine counts',
    );
  if (problems.length > 0)
    throw new SetupRefusedError(`These settings are not safe:\n${problems.map((each) => `  ${each}`).join('\n')}`);
}

async function refuseReplacing(
  file: string,
  before: GivenSettings,
  after: GivenSettings,
  isForced: boolean,
  questions: Questions | null,
): Promise<void> {
  const replaced = Object.keys(before).filter((name) => before[name] !== after[name]);
  if (replaced.length === 0 || isForced) return;
  const which = replaced.join(', ');
  if (questions && /^y(es)?$/i.test(await questions.ask(`Replace ${which} in ${file}? (yes or no)`, 'no'))) return;
  throw new SetupRefusedError(`${file} has other values for ${which}; --force replaces them`);
}

async function check(config: Config, settings: GivenSettings, account: SystemUser | null): Promise<void> {
  // One attempt: a person waits for the answer, and can repeat the command.
  const wait = { waitMs: 0, logger: createLogger({ level: 'silent' }, process.stderr) };
  checkDataDir(config.dataDir, account);
  checkFiles(settings, account);
  checkTlsFiles(config);
  if (config.caFile !== null) trustAuthorities(config.caFile, 'HOLDFAST_CA_FILE');
  await withIdsOf(account, () => checkDatabase(config, wait));
  await checkBucket(config, wait);
}

/**
 * Creates master keys for a database that is not embedded, unless they are set. They are in the data directory, so that they survive the
 * removal of a package.
 */
function makeMasterKeys({ database, dataDir, secrets }: Config, account: SystemUser | null): void {
  if (database.url === null || secrets.masterKeys !== null) return;
  const isNew = readMasterKeys(dataDir) === null;
  const owner = account && ((temporary: string): void => chownSync(temporary, account.uid, account.gid));
  ensureMasterKeys(dataDir, () => KeyRing.generate(), owner ?? undefined);
  if (isNew)
    console.log(`Made ${path.join(dataDir, 'master-keys')}. Keep a copy elsewhere: no secret can be read without it.`);
}

async function createAdmin(runWith: RunWith, config: Config, { admin, organization }: SetupAnswers): Promise<void> {
  for (const words of [
    ['migrate'],
    ['admin', 'create-organization', organization],
    ['admin', 'create-user', admin as string, '--organization', organization, '--role', 'admin', '--site-admin'],
  ])
    if ((await runWith(config, words)) !== 0)
      throw new ConfigError(`The settings are written, but this has failed: holdfast ${words.join(' ')}`);
}

/** The next commands, which may be pasted together. */
export function nextSteps(
  config: Config,
  { admin, organization }: Pick<SetupAnswers, 'admin' | 'organization'>,
  { file, isService }: { file: string; isService: boolean },
): string[] {
  const holdfast = isService ? 'sudo holdfast' : `holdfast --settings ${shellQuoted(file)}`;
  const login = (token: string): string => `PULUMI_ACCESS_TOKEN=${token} pulumi login ${config.publicUrl}`;
  const steps = isService
    ? [...stepsForUnit(config), 'sudo systemctl enable --now holdfast']
    : [`${holdfast} server --migrate`];
  if (config.database.url === null) {
    const token = path.join(config.dataDir, 'first-token');
    // The first start creates both files; later, the admin may have deleted the token.
    const isFirst = !existsSync(path.join(config.dataDir, 'postgres'));
    // systemctl does not wait for the first start.
    if (isService && isFirst)
      steps.push(
        `until sudo test -f ${shellQuoted(token)} || ! systemctl is-active --quiet holdfast; do sleep 1; done`,
      );
    if (isFirst || existsSync(token)) steps.push(login(`"$(${isService ? 'sudo ' : ''}cat ${shellQuoted(token)})"`));
  } else {
    const login1 = admin ?? 'admin';
    if (admin === null)
      steps.push(
        `${holdfast} migrate`,
        `${holdfast} admin create-organization ${organization}`,
        `${holdfast} admin create-user ${login1} --organization ${organization} --role admin --site-admin`,
      );
    steps.push(login(`"$(${holdfast} admin user create-token ${login1})"`));
  }
  return steps;
}

/** The unit lets the service write only to its own folder. */
function stepsForUnit({ dataDir }: Config): string[] {
  if (`${dataDir}/`.startsWith(`${unitFolder}/`)) return [];
  const changes = '/etc/systemd/system/holdfast.service.d';
  return [
    `sudo mkdir -p ${changes}`,
    `printf '%s\\n' '[Service]' ${shellQuoted(`ReadWritePaths=${unitQuoted(dataDir)}`)} | sudo tee ${changes}/data.conf`,
    'sudo systemctl daemon-reload',
  ];
}

/** A path, quoted for a systemd unit. */
function unitQuoted(file: string): string {
  return `"${file.replaceAll('%', '%%').replace(/["\\]/g, '\\$&')}"`;
}

/**
 * Describes the combinations of settings for which `holdfast setup` writes no file. A running server only warns, because a private network
 * may be enough for it.
 */
function listUnsafe(config: Config, given: { readonly publicUrl: boolean }): string[] {
  const { front, listen, managementListen, publicUrl, trustedProxies } = config;
  const problems = listExposures(config).filter((line) => !line.startsWith('HOLDFAST_PUBLIC_URL:'));
  const hasProxy = trustedProxies.rules.length > 0;
  const { hostname, protocol } = new URL(publicUrl);
  if (!given.publicUrl && (hasProxy || !isLoopback(listen.host)))
    problems.push(
      'HOLDFAST_PUBLIC_URL: needed, because others reach the service: --public-url https://pulumi.example.com',
    );
  else if (protocol === 'http:' && !isLoopback(hostname))
    problems.push(`HOLDFAST_PUBLIC_URL: tokens and states could be read on the way to ${publicUrl}; use https://`);
  else if (protocol === 'https:' && front.tls === null && !hasProxy)
    problems.push(
      'HOLDFAST_PUBLIC_URL: nothing terminates TLS; give certificate files (--tls-cert, --tls-key), or name the proxy (--trusted-proxies 127.0.0.1)',
    );
  if (front.tls !== null && protocol === 'http:')
    problems.push('HOLDFAST_PUBLIC_URL: the service speaks TLS only; the URL must begin with https://');
  const management = managementListen ?? listen;
  if (['0.0.0.0', '::'].includes(management.host) && !problems.some((line) => line.startsWith('HOLDFAST_MANAGEMENT')))
    problems.push(
      'HOLDFAST_MANAGEMENT_LISTEN: it has no login; name one address of a private network rather than all addresses of this machine',
    );
  return problems;
}
