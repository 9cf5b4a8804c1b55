// Files of the plugin's folder that the build brings into the script, as texts.

declare module '*.txt' {
  const text: string;
  export default text;
}
declare module '*.csv' {
  const text: string;
  export default text;
}
declare module '*.tsv' {
  const text: string;
  export default text;
}
