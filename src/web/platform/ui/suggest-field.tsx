import { type ComponentProps, useId } from 'react';
import { TextField } from './field.tsx';

/** A field for any text that offers some. The browser shows them, for mouse, keys and screen readers alike. */
export function SuggestField({
  onChange,
  suggestions,
  ...field
}: Omit<ComponentProps<typeof TextField>, 'list' | 'onChange'> & {
  readonly suggestions: readonly string[];
  readonly onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <>
      <TextField {...field} list={id} onChange={({ target }) => onChange(target.value)} />
      <datalist id={id}>
        {suggestions.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </>
  );
}
