import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { isPlaceholder, isWeakKey } from '../crypto/weak-secrets.ts';
import { OperatorError } from '../errors/errors.ts';
import { parseAllowList } from '../outgoing/address-rules.ts';
import { trustAuthorities } from '../tls/certificates.ts';
import { serverVariable } from './cli-login.ts';
import { expected } from './expected.ts';
import { httpServerProblems } from './http-server-config.ts';
import { installationRoot } from './installation.ts';
import { oidcProblems } from './oidc.ts';
import { isSchedule } from './schedule.ts';
import { findServiceLinks } from './service-links.ts';
import { Settings } from './settings.ts';
import { toConfig } from './to-config.ts';
import { type Tuning, tuningFrom, tuningOf } from './tuning.ts';
import { urlProblems } from './url-problems.ts';

/** Parsed once, frozen, passed explicitly. Sizes are in bytes; names give the unit of times. */
export type Config = ReturnType<typeof toConfig> & {
  /** They have our prefix, but Kubernetes sets them to name services. */
  readonly ignoredVariables: readonly string[];
};

export class ConfigError extends OperatorError {
  override readonly name = 'ConfigError';
}

/** Also makes the process trust the authorities named in the environment. */
export function loadConfig(): Config {
  const config = parseConfig(process.env, tuningFrom(process.env['HOLDFAST_TEST_TUNING']));
  if (config.caFile !== null) trustAuthorities(config.caFile, 'HOLDFAST_CA_FILE');
  return config;
}

/** Tests replace values that are not settings by `tuning`. The error names every invalid variable. */
export function parseConfig(
  environment: Readonly<Record<string, string | undefined>>,
  tuning: Partial<Tuning> = {},
): Config {
  const known = Object.keys(Settings.properties);
  const serviceLinks = findServiceLinks(environment).filter((name) => !known.includes(name));
  const given: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('HOLDFAST_') || name.startsWith('HOLDFAST_TEST_') || value === undefined || value === '')
      continue;
    if (serviceLinks.includes(name) || name === serverVariable) continue;
    if (!known.includes(name)) problems.push(`${name}: unknown setting`);
    else given[name] = value;
  }
  for (const name of ['HOLDFAST_LISTEN', 'HOLDFAST_MANAGEMENT_LISTEN'] as const) {
    const port = Number(/:(\d+)$/.exec(given[name] ?? '')?.[1]);
    if (port > 65_535) problems.push(`${name}: port ${port} is above 65535`);
  }
  const converted = Value.Convert(Settings, Value.Default(Settings, { ...given })) as Partial<Settings>;
  // One by one, because TypeBox stops after a few errors in the whole object.
  for (const [name, value] of Object.entries(converted) as [keyof Settings, unknown][]) {
    const schema: TSchema & { description?: string } = Settings.properties[name];
    // Convert truncates fractions silently.
    const isTruncated = typeof value === 'number' && given[name] !== undefined && Number(given[name]) !== value;
    if (isTruncated || !Value.Check(schema, value))
      problems.push(`${name}: must be ${expected(schema)}. ${schema.description ?? ''}`.trim());
  }
  problems.push(...urlProblems(converted));
  problems.push(...httpServerProblems(converted));
  problems.push(...oidcProblems(converted));
  problems.push(...findWeakSecrets(given));
  const schedule = converted.HOLDFAST_BACKUP_SCHEDULE ?? '';
  if (!isSchedule(schedule))
    problems.push(`HOLDFAST_BACKUP_SCHEDULE: ${JSON.stringify(schedule)} is not five fields of cron (0 3 * * *)`);
  const allowed = parseAllowList(given['HOLDFAST_OUTGOING_ALLOW']);
  if ('wrong' in allowed)
    problems.push(
      `HOLDFAST_OUTGOING_ALLOW: ${allowed.wrong.includes('@') ? 'an entry with an @' : JSON.stringify(allowed.wrong)} is neither a network, nor a host name, nor http://host:port`,
    );
  if (problems.length > 0) {
    throw new ConfigError(`Invalid settings:\n${problems.map((problem) => `  ${problem}`).join('\n')}`);
  }
  const settings = converted as Settings;
  const usual = tuningOf(settings);
  const unknown = Object.keys(tuning).find((name) => !Object.hasOwn(usual, name));
  if (unknown !== undefined) throw new TypeError(`There is no value ${unknown} in tuning.ts`);
  const config = toConfig(settings, { ...usual, ...tuning });
  return Object.freeze({ ...config, ignoredVariables: serviceLinks });
}

export const holdfastVersion: string = (
  JSON.parse(readFileSync(path.join(installationRoot, 'package.json'), 'utf8')) as { version: string }
).version;

/** May not exist yet. */
export const webFolder = path.join(installationRoot, 'dist', 'web');

/** Finds placeholders, and secrets that are obviously not random. Quotes no secret. */
function findWeakSecrets(settings: Readonly<Record<string, string>>): string[] {
  const problems: string[] = [];
  // Keys after the first only unwrap, and must stay usable until `rewrap-keys` has run.
  const [, key] = (settings['HOLDFAST_MASTER_KEYS'] ?? '').split(',')[0]?.split(':') ?? [];
  const bytes = Buffer.from(key ?? '', 'base64');
  // Malformed keys are reported elsewhere.
  if (bytes.length === 32 && isWeakKey(bytes))
    problems.push('HOLDFAST_MASTER_KEYS: the first key is not random; make one with: openssl rand -base64 32');
  for (const name of ['HOLDFAST_DATABASE_URL', 'HOLDFAST_DATABASE_REPLICA_URL', 'HOLDFAST_REDIS_URL']) {
    const password = /^[a-z+]+:\/\/[^:@/]*:([^@]*)@/.exec(settings[name] ?? '')?.[1];
    if (password !== undefined && isPlaceholder(password))
      problems.push(`${name}: the password is a placeholder from an example; choose another`);
  }
  return problems;
}
