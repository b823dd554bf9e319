import type { MemberEdit } from '../../../../platform/json/member-edits.ts';
import {
  filterStringLists,
  filterStrings,
  type ResourceReferences,
  readReferences,
} from '../../../deployments/references.ts';
import { editResource, type ResourceText } from '../../../deployments/resource.ts';

/**
 * The CLI rejects a state with references to resources that a refresh found to be gone. A dependency must come earlier in the list, a
 * parent may be anywhere. A missing parent is cleared, not replaced by its own parent. Same as rebuildDependencies in Pulumi's
 * pkg/backend/journal.go.
 */
export function pruneReferences(resources: readonly ResourceText[]): ResourceText[] {
  const references = resources.map(readReferences);
  const positions = new Map<string, number>();
  references.forEach(({ urn }, position) => {
    if (!positions.has(urn)) positions.set(urn, position);
  });
  return resources.map((resource, position) => {
    const isEarlier = (urn: string): boolean => (positions.get(urn) ?? position) < position;
    const { parent, ...others } = references[position] as ResourceReferences;
    const edits = listEdits(others, isEarlier);
    if (parent !== '' && !positions.has(parent)) edits.set('parent', () => null);
    return editResource(resource, edits);
  });
}

function listEdits(
  references: Omit<ResourceReferences, 'parent'>,
  isKnown: (urn: string) => boolean,
): Map<string, MemberEdit> {
  const { deletedWith, dependencies, replaceWith, propertyDependencies } = references;
  const edits = new Map<string, MemberEdit>();
  if (deletedWith !== '' && !isKnown(deletedWith)) edits.set('deletedWith', () => null);
  if (!dependencies.every(isKnown)) edits.set('dependencies', (value) => value && filterStrings(value, isKnown));
  if (!replaceWith.every(isKnown)) edits.set('replaceWith', (value) => value && filterStrings(value, isKnown));
  // A key with an empty list is removed, even if it was empty before.
  if (!propertyDependencies.every((list) => list.length > 0 && list.every(isKnown))) {
    edits.set('propertyDependencies', (value) => value && filterStringLists(value, isKnown));
  }
  return edits;
}
