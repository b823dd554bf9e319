import { type Static, Type } from 'typebox';
import { InvalidRequestError } from '../platform/errors/errors.ts';

/** Pulumi accepts these names: sdk/go/common/tokens/stack_name.go, pkg/backend/httpstate/backend.go. */
const organizationPattern = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,38}[a-zA-Z0-9]$|^[a-zA-Z0-9]$/;
const segmentPattern = /^[A-Za-z0-9_.-]{1,100}$/;
const loginPattern = /^[a-zA-Z0-9][a-zA-Z0-9_.@-]{0,99}$/;

export const StackRef = Type.Object({ organization: Type.String(), project: Type.String(), stack: Type.String() });
export type StackRef = Readonly<Static<typeof StackRef>>;

/** `org/project/stack`. */
export function formatStackRef(ref: StackRef): string {
  return `${ref.organization}/${ref.project}/${ref.stack}`;
}

export function isOrganizationName(name: string): boolean {
  return organizationPattern.test(name);
}

/** Programs call paths below these. The server has no pages there. */
export const programPaths = 'api trpc scim policy-packs assets fonts healthz readyz metrics'.split(' ');
const pagePaths = ['account', 'cli-login', 'sign-in', 'sign-out'];

/** Pages of such an organization would have the addresses of other pages. A proxy may ignore the case. */
export function isReservedName(name: string): boolean {
  return [...programPaths, ...pagePaths].includes(name.toLowerCase());
}

export function isLogin(name: string): boolean {
  return loginPattern.test(name);
}

/** For projects and stacks. `.` and `..` are invalid, because clients collapse them in paths. */
export function isSegmentName(name: string): boolean {
  return segmentPattern.test(name) && name !== '.' && name !== '..';
}

/** Throws InvalidRequestError, which names the broken rule. */
export function assertStackRef(ref: StackRef): void {
  assertOrganizationName(ref.organization);
  assertProjectName(ref.project);
  assertStackName(ref.stack);
}

export function assertOrganizationName(name: string): void {
  if (!isOrganizationName(name)) {
    throw new InvalidRequestError(
      `Organization name ${quote(name)} is not valid: 1 to 40 letters, digits, hyphens and underscores, beginning and ending with a letter or digit`,
    );
  }
}

export function assertProjectName(name: string): void {
  if (!isSegmentName(name)) throw new InvalidRequestError(`Project name ${quote(name)} is not valid: ${segmentRule}`);
}

export function assertStackName(name: string): void {
  if (!isSegmentName(name)) throw new InvalidRequestError(`Stack name ${quote(name)} is not valid: ${segmentRule}`);
}

const segmentRule = '1 to 100 letters, digits, hyphens, underscores and periods, and neither "." nor ".."';

/** Null unless the text is `org/project/stack` with valid names. */
export function parseQualifiedName(text: string): StackRef | null {
  const [organization, project, stack, ...rest] = text.split('/');
  if (organization === undefined || project === undefined || stack === undefined || rest.length > 0) return null;
  if (!isOrganizationName(organization) || !isSegmentName(project) || !isSegmentName(stack)) return null;
  return { organization, project, stack };
}

function quote(name: string): string {
  const shown = name.length > 60 ? `${name.slice(0, 60)}…` : name;
  return JSON.stringify(shown);
}
