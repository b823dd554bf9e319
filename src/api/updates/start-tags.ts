import { maxTags, type Tags } from '../../shared/stacks/tags.ts';

const maxListed = 20;

/**
 * The tags of a stack after a start with the tags `given`, which replace `before`. The CLI sends all tags that it has read, with its own
 * changes. After a wait, only differences from the tags `atArrival` (null: it has not waited) are its own changes.
 */
export function tagsAfterStart(
  given: Tags,
  before: Tags,
  atArrival: Tags | null,
): { tags: Tags; warnings: readonly string[] } {
  if (atArrival === null) return { tags: given, warnings: [] };
  const tags = Object.assign(Object.create(null), before) as Tags;
  for (const [name, value] of Object.entries(given)) if (atArrival[name] !== value) tags[name] = value;
  for (const name of Object.keys(atArrival)) if (given[name] === undefined) delete tags[name];
  if (Object.keys(tags).length > maxTags)
    return { tags: before, warnings: [`A stack can have at most ${maxTags} tags: its tags were not changed`] };
  const names = new Set([...Object.keys(given), ...Object.keys(tags)]);
  const kept = [...names].filter((name) => tags[name] !== given[name]);
  // The order of the client is kept, so that its next start finds the same text.
  if (kept.length === 0) return { tags: given, warnings: [] };
  const listed = kept.slice(0, maxListed).sort().join(', ');
  return {
    tags,
    warnings: [`Tags of the stack were changed while this update waited, and stay so: ${listed}`],
  };
}
