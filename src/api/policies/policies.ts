import {
  ConflictError,
  InvalidRequestError,
  NotFoundError,
  PayloadTooLargeError,
} from '../../shared/platform/errors/errors.ts';
import type { Caller } from '../platform/http/request.ts';

/** The facts that decide which stacks of groups the caller sees; null: all, for callers who manage groups. */
export function seenBy({ facts, isScoped, role }: Caller): Caller['facts'] {
  return role === 'admin' && !isScoped ? null : facts;
}

/** The CLI puts names unescaped into paths, where `.` and `..` have another meaning. */
const namePattern = /^(?!\.{1,2}$)[a-zA-Z0-9_.-]{1,100}$/;

/** `what`: for example "policy pack". */
export function assertPolicyName(what: string, name: string): void {
  if (namePattern.test(name)) return;
  throw new InvalidRequestError(
    `The name of the ${what}, ${JSON.stringify(name.slice(0, 60))}, is not valid: 1 to 100 letters, digits, hyphens, underscores and periods, and neither "." nor ".."`,
  );
}

const levels = ['advisory', 'mandatory', 'remediate', 'disabled'];
/** The name stands for all policies of a pack. */
const allPolicies = 'all';

/** Refuses unknown policies and levels. The policies themselves check the rest of their configuration. */
export function assertPolicyConfig(pack: string, config: object, policies: ReadonlySet<string>): void {
  for (const [policy, settings] of Object.entries(config)) {
    if (policy !== allPolicies && !policies.has(policy)) {
      throw new InvalidRequestError(`Policy pack ${pack} has no policy ${JSON.stringify(policy.slice(0, 100))}`);
    }
    const level =
      typeof settings === 'string' ? settings : (settings as { enforcementLevel?: unknown })?.enforcementLevel;
    if (level !== undefined && !levels.includes(level as string)) {
      throw new InvalidRequestError(
        `The enforcement level of policy ${JSON.stringify(policy.slice(0, 100))} is not one of ${levels.join(', ')}`,
      );
    }
  }
}

/** The configuration is read whole at the start of each update. `where`: for example "policy group production". */
export function assertConfigBytes(where: string, bytes: number, maxBytes: number): void {
  if (bytes <= maxBytes) return;
  throw new PayloadTooLargeError(
    `The policy packs of ${where} would have ${bytes} bytes of configuration, counting ${packBytes} for each pack; at most ${maxBytes} are accepted`,
  );
}

/** The names of a pack and the address of its archive also count. */
export const packBytes = 1_024;

export function packNotFound(organization: string, pack: string, versionTag?: string): NotFoundError {
  const version = versionTag ? ` version ${versionTag.slice(0, 100)}` : '';
  return new NotFoundError(`There is no policy pack ${organization}/${pack.slice(0, 100)}${version}`);
}

export function groupNotFound(organization: string, group: string): NotFoundError {
  return new NotFoundError(`There is no policy group ${group.slice(0, 100)} in organization ${organization}`);
}

export function packInUse(pack: string, groups: readonly string[]): ConflictError {
  return new ConflictError(
    `Policy pack ${pack} is enabled in ${groups.map((group) => `policy group ${group}`).join(', ')}. Disable it there first: \`pulumi policy disable\``,
  );
}
