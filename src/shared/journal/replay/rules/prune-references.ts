import {
  filterStringLists,
  filterStrings,
  type ResourceReferences,
  readReferences,
} from '../../../deployments/references.ts';
import { editResource, type ResourceText } from '../../../deployments/resource.ts';
import type { MemberEdit } from '../../../platform/json/member-edits.ts';

/**
 * Takes away references to resources that a refresh found gone; the CLI refuses a state that has them. A dependency
 * must stand earlier in the list, a parent may stand anywhere. A parent that is gone is cleared, not replaced by its
 * own parent. As Pulumi's pkg/backend/journal.go, rebuildDependencies.
 */
export function pruneReferences(resources: readonly ResourceText[]): ResourceText[] {
  const references = resources.map(readReferences);
  const places = new Map<string, number>();
  references.forEach(({ urn }, place) => {
    if (!places.has(urn)) places.set(urn, place);
  });
  return resources.map((resource, place) => {
    const isEarlier = (urn: string): boolean => (places.get(urn) ?? place) < place;
    const { parent, ...others } = references[place] as ResourceReferences;
    const edits = listEdits(others, isEarlier);
    if (parent !== '' && !places.has(parent)) edits.set('parent', () => null);
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
  // A key without dependencies goes even when nothing was dropped from it.
  if (!propertyDependencies.every((list) => list.length > 0 && list.every(isKnown))) {
    edits.set('propertyDependencies', (value) => value && filterStringLists(value, isKnown));
  }
  return edits;
}
