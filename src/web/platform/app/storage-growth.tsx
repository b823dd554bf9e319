import { byteText } from '../ui/byte-text.ts';
import { DayChart } from '../ui/day-chart.tsx';
import type { OperatorStorage } from './contract.ts';

/** Storage by day and kind. Renders nothing before the second day. */
export function StorageGrowth({ days, title }: { readonly title: string; readonly days: OperatorStorage['days'] }) {
  if (days.length < 2) return null;
  return (
    <DayChart
      title={title}
      total=""
      days={days.map(({ day }) => day)}
      format={byteText}
      series={[
        { name: 'States', tone: 'accent', values: days.map(({ stateBytes }) => stateBytes) },
        { name: 'Journals', tone: 'warning', values: days.map(({ journalBytes }) => journalBytes) },
        { name: 'Events', tone: 'neutral', values: days.map(({ eventBytes }) => eventBytes) },
      ]}
    />
  );
}
