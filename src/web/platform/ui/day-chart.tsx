import type { ReactNode } from 'react';
import { ChartFrame } from './chart-frame.tsx';
import { CsvButton } from './csv-button.tsx';
import styles from './day-chart.module.css';
import { dateLocale } from './locale.ts';
import { dayChartTexts } from './texts.tsx';

export interface DaySeries {
  readonly name: string;
  readonly tone: 'accent' | 'failure' | 'neutral' | 'warning';
  /** One value for each day. */
  readonly values: readonly number[];
}

const dayText = new Intl.DateTimeFormat(dateLocale, { day: 'numeric', month: 'short', timeZone: 'UTC' });

/** Daily statistics as stacked bars, with an equivalent table. `days`: in the form 2026-01-31. */
export function DayChart({
  days,
  format,
  series,
  title,
  total,
}: {
  readonly title: string;
  /** The whole period in words. */
  readonly total: ReactNode;
  readonly days: readonly string[];
  readonly series: readonly DaySeries[];
  readonly format: (value: number) => string;
}) {
  const sums = days.map((_, at) => series.reduce((sum, { values }) => sum + (values[at] ?? 0), 0));
  const most = Math.max(...sums, 0);
  const nameOf = (day: string): string => dayText.format(new Date(`${day}T00:00:00Z`));
  return (
    <ChartFrame
      title={title}
      total={total}
      most={most === 0 ? '' : format(most)}
      ends={[nameOf(days[0] ?? '1970-01-01'), dayChartTexts.today]}
      foot={
        <div className={styles['foot']}>
          {series.length === 1 ? null : (
            <ul className={styles['legend']} aria-hidden="true">
              {series.map(({ name, tone }) => (
                <li key={name}>
                  <span className={`${styles['swatch']} ${styles[tone]}`} />
                  {name}
                </li>
              ))}
            </ul>
          )}
          <details className={styles['table']}>
            <summary>{dayChartTexts.asTable}</summary>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls. */}
            <section className={styles['rows']} tabIndex={0} aria-label={title}>
              <CsvButton
                fileName={`${title.toLowerCase().replaceAll(/[^a-z]+/g, '-')}.csv`}
                read={() => [
                  ['day', ...series.map(({ name }) => name)],
                  ...days.map((day, at) => [day, ...series.map(({ values }) => values[at] ?? 0)]),
                ]}
              />
              <table aria-label={title}>
                <thead>
                  <tr>
                    <th scope="col">{dayChartTexts.day}</th>
                    {series.map(({ name }) => (
                      <th key={name} scope="col">
                        {name}
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {days.map((day, at) => (
                    <tr key={day}>
                      <th scope="row">{nameOf(day)}</th>
                      {series.map(({ name, values }) => (
                        <td key={name}>{format(values[at] ?? 0)}</td>
                      ))}
                    </tr>
                  ))}
                </tbody>
              </table>
            </section>
          </details>
        </div>
      }
    >
      <div className={styles['bars']}>
        {days.map((day, at) => (
          <div
            key={day}
            className={styles['day']}
            title={[nameOf(day), ...series.map(({ name, values }) => `${name}: ${format(values[at] ?? 0)}`)].join('\n')}
          >
            {series.map(({ name, tone, values }) =>
              (values[at] ?? 0) === 0 ? null : (
                <span
                  key={name}
                  className={`${styles['part']} ${styles[tone]}`}
                  style={{ height: `${(100 * (values[at] ?? 0)) / most}%` }}
                />
              ),
            )}
          </div>
        ))}
      </div>
    </ChartFrame>
  );
}
