import { byteText } from '../ui/byte-text.ts';
import { DayChart } from '../ui/day-chart.tsx';
import type { OperatorStorage } from './procedure-types.ts';
import { storageTexts } from './texts.tsx';

/** Renders nothing before the second day. */
export function StorageGrowth({ days, title }: { readonly title: string; readonly days: OperatorStorage['days'] }) {
  if (days.length < 2) return null;
  return (
    <DayChart
      title={title}
      total=""
      days={days.map(({ day }) => day)}
      format={byteText}
      series={[
        { name: storageTexts.states, tone: 'accent', values: days.map(({ stateBytes }) => stateBytes) },
        { name: storageTexts.journals, tone: 'warning', values: days.map(({ journalBytes }) => journalBytes) },
        { name: storageTexts.events, tone: 'neutral', values: days.map(({ eventBytes }) => eventBytes) },
      ]}
    />
  );
}
