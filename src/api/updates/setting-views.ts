import { httpUrl } from '../platform/http/http-url.ts';

const maxKeys = 500;
const maxValueChars = 10_000;
const maxEnvironmentChars = 500;
/** Names of values about the program's repository, the run and the CLI; no variables of the process. */
const safeNames = /^(git|ci|vcs|exec)\.[\w.-]{1,100}$|^pulumi\.(version|os|arch|flag\.[\w.-]{1,100})$/;

export interface SettingView {
  readonly key: string;
  readonly value: string | null;
  readonly isSecret: boolean;
}

/**
 * Settings as the CLI sends them (apitype.ConfigValue), in the order of their keys; null if there are too many to read. A value that is not
 * known to be plain counts as a secret.
 */
export function readConfig(json: string | null): SettingView[] | null {
  if (json === null) return null;
  return Object.entries(JSON.parse(json) as Record<string, unknown>)
    .slice(0, maxKeys)
    .map(([key, value]) => {
      const { string: text, secret } = (typeof value === 'object' && value !== null ? value : {}) as Record<
        string,
        unknown
      >;
      const isSecret = secret === true || typeof text !== 'string';
      // An object may contain secrets: {"password": {"secure": "…"}}.
      const isRedacted = isSecret || /"secure"\s*:/.test(text);
      return { key, value: isRedacted ? null : text.slice(0, maxValueChars), isSecret: isRedacted };
    })
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** Null if the environment is too large to read. */
export function safeEnvironment(json: string | null): Record<string, string> | null {
  if (json === null) return null;
  const entries = Object.entries(JSON.parse(json) as Record<string, unknown>).filter(
    (entry): entry is [string, string] =>
      safeNames.test(entry[0]) && typeof entry[1] === 'string' && isShown(entry[0], entry[1]),
  );
  return Object.fromEntries(
    entries.slice(0, maxKeys).map(([name, value]) => [name, value.slice(0, maxEnvironmentChars)]),
  );
}

/** Addresses are shown as links. */
function isShown(name: string, value: string): boolean {
  return !name.endsWith('.url') || httpUrl(value) !== null;
}

/** `name` may be a full reference. */
export function branchName(name: string | null): string | null {
  return name?.replace(/^refs\/heads\//, '') ?? null;
}

export function gitOf(environment: Readonly<Record<string, string>> | null) {
  if (environment === null) return null;
  const { 'git.head': commit, 'git.headName': branch, 'vcs.owner': owner, 'vcs.repo': repo } = environment;
  const name = owner !== undefined && repo !== undefined ? `${owner}/${repo}` : (repo ?? null);
  if (name === null && commit === undefined) return null;
  return {
    repo: name,
    kind: environment['vcs.kind'] ?? null,
    branch: branchName(branch ?? null),
    commit: commit ?? null,
  };
}
