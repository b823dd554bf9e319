import { JsonScanner } from '../../../../platform/json/json-scanner.ts';
import { type Replacement, replaceRanges } from '../../../../platform/json/member-edits.ts';
import {
  type ReferenceField,
  type ResourceReferences,
  readReferences,
  referenceFieldAt,
} from '../../../deployments/references.ts';
import { editResource, type ResourceText, readResource } from '../../../deployments/resource.ts';
import { formatUrn, parseUrn, providerUrn, rootStackType } from '../../../deployments/urn.ts';

/** References to the alias are ambiguous. */
export class AliasConflictError extends Error {
  override readonly name = 'AliasConflictError';

  constructor(alias: string, urn: string, otherUrn: string) {
    super(`Resources ${urn} and ${otherUrn} have the same alias ${alias}`);
  }
}

export interface ResolvedAliases {
  readonly resources: readonly ResourceText[];
  readonly snippets: Buffer | undefined;
}

/**
 * Rewrites references to former URNs and removes `aliases`. Follows one hop only and does not change `replaceWith`, like
 * NormalizeURNReferences in Pulumi's sdk/go/common/apitype/core.go. Throws AliasConflictError.
 */
export function resolveAliases(resources: readonly ResourceText[], snippets: Buffer | undefined): ResolvedAliases {
  if (!resources.some((resource) => resource.hasAliases)) return { resources, snippets };

  const references = resources.map(readReferences);
  const newUrns = mapAliases(references);
  return {
    resources: resources.map((resource, i) => {
      const renamed = namesAny(references[i] as ResourceReferences, newUrns)
        ? readResource(renameReferences(resource.text, resourceUrnKind, newUrns))
        : resource;
      return renamed.hasAliases ? editResource(renamed, new Map([['aliases', () => null]])) : renamed;
    }),
    snippets: snippets && renameReferences(snippets, snippetUrnKind, newUrns),
  };
}

function mapAliases(references: readonly ResourceReferences[]): Map<string, string> {
  const newUrns = new Map<string, string>();
  for (const { urn, parent, aliases } of references) {
    for (const alias of aliases) {
      // An empty alias would rename every absent reference.
      if (alias === '') continue;
      const other = newUrns.get(alias);
      if (other !== undefined && other !== urn) throw new AliasConflictError(alias, other, urn);
      newUrns.set(alias, urn);
    }
    const newParent = newUrns.get(parent);
    const moved = newParent ? moveUnder(urn, newParent) : null;
    if (moved !== null) newUrns.set(urn, moved);
  }
  return newUrns;
}

/** `parent` is the parent's new URN. Null if it does not affect the resource's URN. */
function moveUnder(urn: string, parent: string): string | null {
  const parts = parseUrn(urn);
  const parentType = parseUrn(parent)?.type;
  if (!parts || parentType === undefined || parentType === rootStackType) return null;
  const ownType = parts.type.slice(parts.type.lastIndexOf('$') + 1);
  return formatUrn({ ...parts, type: `${parentType}$${ownType}` });
}

function namesAny(references: ResourceReferences, urns: ReadonlyMap<string, string>): boolean {
  const { urn, parent, provider, deletedWith, viewOf, dependencies, propertyDependencies } = references;
  return (
    urns.has(urn) ||
    urns.has(parent) ||
    urns.has(deletedWith) ||
    urns.has(viewOf) ||
    urns.has(providerUrn(provider)) ||
    dependencies.some((dependency) => urns.has(dependency)) ||
    propertyDependencies.some((list) => list.some((dependency) => urns.has(dependency)))
  );
}

/** `aliases` are being resolved, and Pulumi does not change `replaceWith`. */
const unresolvedFields: ReadonlySet<ReferenceField> = new Set(['aliases', 'replaceWith']);

type UrnKind = 'urn' | 'provider' | null;

function resourceUrnKind(path: readonly (string | number)[]): UrnKind {
  const field = referenceFieldAt(path);
  if (field === null || unresolvedFields.has(field)) return null;
  return field === 'provider' ? 'provider' : 'urn';
}

function snippetUrnKind(path: readonly (string | number)[]): UrnKind {
  return path.length === 3 && path[1] === 'references' ? 'urn' : null;
}

/** Replaces only strings that `urnKind` identifies as URNs. */
function renameReferences(
  text: Buffer,
  urnKind: (path: readonly (string | number)[]) => UrnKind,
  newUrns: ReadonlyMap<string, string>,
): Buffer {
  const replacements: Replacement[] = [];
  const scanner = new JsonScanner({
    reportDepth: 3,
    onValue: (path, kind, start, end) => {
      const foundKind = kind === 'string' ? urnKind(path) : null;
      if (foundKind === null) return;
      const value = JSON.parse(text.toString('utf8', start, end)) as string;
      const oldUrn = foundKind === 'provider' ? providerUrn(value) : value;
      const newUrn = newUrns.get(oldUrn);
      if (newUrn === undefined) return;
      replacements.push({ start, end, by: Buffer.from(JSON.stringify(newUrn + value.slice(oldUrn.length))) });
    },
  });
  scanner.write(text);
  scanner.end();
  return replacements.length > 0 ? replaceRanges(text, replacements) : text;
}
