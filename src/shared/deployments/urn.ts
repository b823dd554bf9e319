import type { StackRef } from '../stacks/names.ts';

/** A stack's place before and after a rename. */
export interface StackRename {
  readonly from: StackRef;
  readonly to: StackRef;
}

const urnPrefix = 'urn:pulumi:';
const rootStackType = 'pulumi:pulumi:Stack';

/**
 * The URN as it reads after the rename; one of another stack or project stays as it is. Takes provider references
 * (`<urn>::<id>`) too: the id passes as a part of the name, which changes for the root stack only.
 * Rules as in Pulumi's pkg/resource/edit/operations.go, RenameStack.
 */
export function renameUrn(urn: string, { from, to }: StackRename): string {
  if (!urn.startsWith(urnPrefix)) return urn;
  const stackEnd = urn.indexOf('::', urnPrefix.length);
  const projectEnd = stackEnd < 0 ? -1 : urn.indexOf('::', stackEnd + 2);
  const typeEnd = projectEnd < 0 ? -1 : urn.indexOf('::', projectEnd + 2);
  if (typeEnd < 0 || urn.slice(urnPrefix.length, stackEnd) !== from.stack) return urn;

  const ownProject = urn.slice(stackEnd + 2, projectEnd);
  if (ownProject !== from.project && toProjectPath(ownProject) !== from.project) return urn;
  const project = from.project === to.project ? ownProject : to.project;

  const type = urn.slice(projectEnd + 2, typeEnd);
  const name = type === rootStackType ? `${project}-${to.stack}` : urn.slice(typeEnd + 2);
  return `${urnPrefix}${to.stack}::${project}::${type}::${name}`;
}

/**
 * How the CLI spells a project in paths (pkg/backend/httpstate/backend.go, cleanProjectName). URNs keep the spelling
 * of Pulumi.yaml, which in old projects may hold a space, say.
 */
function toProjectPath(project: string): string {
  return project.replace(/[^a-zA-Z0-9\-_.]/gu, '-');
}
