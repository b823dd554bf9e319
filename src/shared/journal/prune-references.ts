import { scanMembers, sliceOf } from '../platform/json/json-text.ts';
import { filterStringLists, filterStrings, type ResourceReferences, readReferences } from './resource-references.ts';
import { editResource, type ResourceText } from './resource-text.ts';

/**
 * Takes away references to resources that a refresh found gone; the CLI refuses a state that has them. A dependency
 * must stand earlier in the list, a parent may stand anywhere. A parent that is gone is cleared, not replaced by its
 * own parent. As Pulumi's pkg/backend/journal.go, rebuildDependencies.
 */
export function pruneReferences(resources: readonly ResourceText[]): ResourceText[] {
  const known = new Set<string>();
  const isKnown = (urn: string): boolean => known.has(urn);
  const parents: string[] = [];
  const edits = resources.map((resource) => {
    const references = readReferences(resource);
    const edit = pruneOne(resource.text, references, isKnown);
    known.add(references.urn);
    parents.push(references.parent);
    return edit;
  });
  return resources.map((resource, i) => {
    const edit = edits[i] ?? new Map<string, null>();
    const parent = parents[i];
    if (parent && !known.has(parent)) edit.set('parent', null);
    return editResource(resource, edit);
  });
}

function pruneOne(
  text: Buffer,
  references: ResourceReferences,
  isKnown: (urn: string) => boolean,
): Map<string, Buffer | null> {
  const edits = new Map<string, Buffer | null>();
  if (references.deletedWith !== '' && !isKnown(references.deletedWith)) edits.set('deletedWith', null);

  const { dependencies, replaceWith, propertyDependencies } = references;
  const prunesDependencies = !dependencies.every(isKnown);
  const prunesReplaceWith = !replaceWith.every(isKnown);
  // A key with no dependencies goes even when nothing was dropped from it.
  const prunesProperties = propertyDependencies.some((list) => list.length === 0 || !list.every(isKnown));
  if (!prunesDependencies && !prunesReplaceWith && !prunesProperties) return edits;

  const members = scanMembers(text);
  const value = (name: string): Buffer => {
    const span = members?.get(name);
    return span ? sliceOf(text, span) : Buffer.alloc(0);
  };
  if (prunesDependencies) edits.set('dependencies', filterStrings(value('dependencies'), isKnown));
  if (prunesReplaceWith) edits.set('replaceWith', filterStrings(value('replaceWith'), isKnown));
  if (prunesProperties) {
    edits.set('propertyDependencies', filterStringLists(value('propertyDependencies'), isKnown));
  }
  return edits;
}
