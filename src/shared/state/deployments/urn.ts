import type { StackRef } from '../../stacks/names.ts';

/** Type of the resource that represents the stack itself. */
export const rootStackType = 'pulumi:pulumi:Stack';

const urnPrefix = 'urn:pulumi:';

/** `urn:pulumi:<stack>::<project>::<type>::<name>`. */
export interface Urn {
  readonly stack: string;
  readonly project: string;
  /** Preceded by the types of its parents, each followed by `$`. */
  readonly type: string;
  readonly name: string;
}

/** A name can contain `::`, as it does in a provider reference (`<urn>::<id>`). */
export function parseUrn(text: string): Urn | null {
  if (!text.startsWith(urnPrefix)) return null;
  const stackEnd = text.indexOf('::', urnPrefix.length);
  const projectEnd = stackEnd < 0 ? -1 : text.indexOf('::', stackEnd + 2);
  const typeEnd = projectEnd < 0 ? -1 : text.indexOf('::', projectEnd + 2);
  if (typeEnd < 0) return null;
  return {
    stack: text.slice(urnPrefix.length, stackEnd),
    project: text.slice(stackEnd + 2, projectEnd),
    type: text.slice(projectEnd + 2, typeEnd),
    name: text.slice(typeEnd + 2),
  };
}

export function formatUrn({ stack, project, type, name }: Urn): string {
  return `${urnPrefix}${stack}::${project}::${type}::${name}`;
}

/** The form of a provider reference is `<urn>::<id>`. */
export function providerUrn(reference: string): string {
  return reference.slice(0, Math.max(reference.lastIndexOf('::'), 0));
}

export interface StackRename {
  readonly from: StackRef;
  readonly to: StackRef;
}

/**
 * A URN of another stack or project is unchanged. Also accepts provider references: the id counts as part of the name, which changes only
 * for the root stack. Same rules as RenameStack in Pulumi's pkg/resource/edit/operations.go.
 */
export function renameUrn(text: string, { from, to }: StackRename): string {
  const urn = parseUrn(text);
  if (urn?.stack !== from.stack) return text;
  if (urn.project !== from.project && toProjectPath(urn.project) !== from.project) return text;
  const project = from.project === to.project ? urn.project : to.project;
  const name = urn.type === rootStackType ? `${project}-${to.stack}` : urn.name;
  return formatUrn({ stack: to.stack, project, type: urn.type, name });
}

/**
 * As the CLI does in paths (pkg/backend/httpstate/backend.go, cleanProjectName). URNs keep the spelling of Pulumi.yaml, which can contain a
 * space in old projects, for example.
 */
export function toProjectPath(project: string): string {
  return project.replace(/[^a-zA-Z0-9\-_.]/gu, '-');
}
