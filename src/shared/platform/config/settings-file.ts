import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { codeOf } from '../errors/causes.ts';
import { OperatorError } from '../errors/errors.ts';

const accessKey = /^AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)$/;

/** By the names of their environment variables. */
export type GivenSettings = Readonly<Record<string, string>>;

export class SettingsFileError extends OperatorError {
  override readonly name = 'SettingsFileError';
}

/** Variables that are set and not empty win. */
export function loadSettingsFile(file: string, environment: NodeJS.ProcessEnv = process.env): void {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw unreadable(file, error);
  }
  for (const [name, value] of Object.entries(parseSettings(text))) environment[name] ||= value;
}

export function readSettingsFile(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw unreadable(file, error);
  }
}

/** Empty settings count as unset. */
export function parseSettings(text: string): GivenSettings {
  return Object.fromEntries(
    Object.entries(parseEnv(text)).filter((entry): entry is [string, string] => Boolean(entry[1])),
  );
}

/** Includes access to S3. */
export function settingsOfEnvironment(): GivenSettings {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      (entry): entry is [string, string] =>
        (/^HOLDFAST_(?!TEST_)/.test(entry[0]) || accessKey.test(entry[0])) && Boolean(entry[1]),
    ),
  );
}

/** The AWS SDK of this process reads the environment. */
export function giveAccess(settings: GivenSettings): void {
  for (const [name, value] of Object.entries(settings)) if (accessKey.test(name)) process.env[name] = value;
}

const assignment = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=/;
/** Needs no quotes, neither here nor in a systemd unit. */
const plain = /^[\w./:@%+,=?&~-]*$/;

/** Writes exactly these settings. Keeps comments, and the order of existing settings. */
export function editSettings(text: string, settings: GivenSettings): string {
  const missing = new Map(Object.entries(settings));
  const before = parseSettings(text);
  const lines = text.split('\n').flatMap((line) => {
    const name = assignment.exec(line)?.[1];
    if (name === undefined) return [line];
    const value = missing.get(name);
    missing.delete(name);
    if (value === undefined) return [];
    return [value === before[name] ? line : lineOf(name, value)];
  });
  while (lines.at(-1) === '') lines.pop();
  const result = `${[...lines, ...[...missing].map(([name, value]) => lineOf(name, value))].join('\n')}\n`;
  const read = parseSettings(result);
  const names = new Set([...Object.keys(settings), ...Object.keys(read)]);
  const lost = [...names].find((name) => read[name] !== settings[name] || /[\r\n]/.test(read[name] ?? ''));
  if (lost !== undefined) throw new SettingsFileError(`${lost}: this value cannot be written to a file of settings`);
  return result;
}

function lineOf(name: string, value: string): string {
  if (plain.test(value)) return `${name}=${value}`;
  return value.includes("'") ? `${name}="${value}"` : `${name}='${value}'`;
}

function unreadable(file: string, error: unknown): SettingsFileError {
  return new SettingsFileError(`${file} cannot be read: ${(error as Error).message}`, { cause: error });
}
