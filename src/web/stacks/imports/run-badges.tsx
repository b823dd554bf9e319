import type { ImportRun } from '../../platform/app/procedure-types.ts';
import { Badge } from '../../platform/ui/badge.tsx';
import styles from './imports.module.css';
import { importBadgeTexts } from './texts.ts';

/** The result of a run, and whether the imported stacks were compared with their source since. */
export function RunBadges({ run }: { readonly run: ImportRun }) {
  const { endedAt, kind, noted, quarantined, verified } = run;
  const { kept, withDifferences, withGaps } = importBadgeTexts;
  const notedText = kind === 'verify' ? withDifferences : kind === 'rollback' ? kept : withGaps;
  return (
    <span className={styles['badges']}>
      {endedAt === null ? <Badge tone="warning">{importBadgeTexts.notEnded}</Badge> : null}
      {noted > 0 ? <Badge tone={kind === 'verify' ? 'failure' : 'warning'}>{notedText(noted)}</Badge> : null}
      {quarantined > 0 ? <Badge tone="warning">{importBadgeTexts.inQuarantine(quarantined)}</Badge> : null}
      {kind === 'verify' && endedAt !== null && noted === 0 ? (
        <Badge tone="success">{importBadgeTexts.noDifferences}</Badge>
      ) : null}
      {kind === 'import' ? <VerifiedBadge verified={verified} /> : null}
    </span>
  );
}

function VerifiedBadge({ verified }: Pick<ImportRun, 'verified'>) {
  if (verified === null) return <Badge>{importBadgeTexts.notVerified}</Badge>;
  const { differentStacks, stacks } = verified;
  return differentStacks > 0 ? (
    <Badge tone="failure">{importBadgeTexts.differ(differentStacks, stacks)}</Badge>
  ) : (
    <Badge tone="success">{importBadgeTexts.verified(stacks)}</Badge>
  );
}
