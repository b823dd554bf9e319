import type { RulePreview } from '../../platform/app/procedure-types.ts';
import { dateLocale } from '../../platform/ui/locale.ts';
import { Time } from '../../platform/ui/time.tsx';
import { useTimeDisplay, zoneOf } from '../../platform/ui/time-display.ts';
import { windowTimesTexts } from './texts.tsx';
import styles from './window-times.module.css';

const parts = { weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' } as const;

type FreezeTimes = NonNullable<RulePreview['freeze']>;

/** Times are the reader's, or in UTC. */
export function NextWindows({
  freeze,
  isStateShown = true,
}: {
  readonly freeze: FreezeTimes;
  /** Whether to say that the freeze is in force now. */
  readonly isStateShown?: boolean;
}) {
  const { inForce, next } = freeze;
  const timeZone = zoneOf(useTimeDisplay());
  const days = new Intl.DateTimeFormat(dateLocale, timeZone === undefined ? parts : { ...parts, timeZone });
  return (
    <div className={styles['times']}>
      {inForce === null || !isStateShown ? null : (
        <p>{windowTimesTexts.inForce(inForce.until === null ? null : <Time at={inForce.until} />)}</p>
      )}
      {next.length === 0 ? (
        inForce === null ? (
          <p>{windowTimesTexts.neverAgain}</p>
        ) : null
      ) : (
        <>
          <p>{windowTimesTexts.nextWindows(timeZone)}</p>
          <ul className={styles['windows']}>
            {next.map(({ from, until }) => (
              <li key={`${from} ${until}`}>{days.formatRange(new Date(from), new Date(until))}</li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
