import type { Tags } from './tags.ts';

/** The state was imported although the CLI refuses to load it. The value of this tag is the reason. */
export const quarantineTag = 'holdfast:quarantine';

const maxReasonBytes = 250;

/** Removes the mark if there is no reason. */
export function withQuarantine(tags: Tags, reason: string | null): Tags {
  const { [quarantineTag]: _, ...others } = tags;
  if (reason === null) return others;
  return { ...others, [quarantineTag]: Buffer.from(reason).subarray(0, maxReasonBytes).toString('utf8') };
}

/** For readers of the state; null if the stack is not in quarantine. */
export function describeQuarantine(tags: Tags): string | null {
  const reason = tags[quarantineTag];
  if (reason === undefined) return null;
  return (
    `The state of this stack was imported in quarantine, because the CLI refuses it: ${reason}. ` +
    `Repair it with \`pulumi state repair\`, then run \`pulumi stack tag rm ${quarantineTag}\``
  );
}
