// Command render renders a Helm chart as `helm template` does, without Helm: Go's own template
// engine, sprig's functions and those few that Helm adds, the same merging of values, the same
// treatment of missing keys. It knows no subcharts and asks no cluster (`lookup` finds nothing).
//
//	render [-release NAME] [-namespace NS] [-kube 1.29] [-api GROUP/VERSION,...] CHART VALUES...
//
// Each VALUES file is rendered on its own ("-" for the chart's defaults alone). The answer is one
// JSON document: {file: {"values": {...}, "templates": {name: text}, "error": "..."}}.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

// An include that calls itself ends here, as in Helm.
const mostNested = 1000

type object = map[string]interface{}

// files gives templates the chart's other files.
type files map[string][]byte

func (f files) Get(name string) string { return string(f[name]) }

func (f files) Glob(pattern string) files {
	found := files{}
	for name, content := range f {
		if ok, _ := path.Match(pattern, name); ok {
			found[name] = content
		}
	}
	return found
}

// versions is the list of API versions that the cluster is said to have.
type versions []string

func (v versions) Has(name string) bool {
	for _, known := range v {
		if known == name {
			return true
		}
	}
	return false
}

type answer struct {
	Values    object            `json:"values,omitempty"`
	Templates map[string]string `json:"templates,omitempty"`
	Error     string            `json:"error,omitempty"`
}

func main() {
	release := flag.String("release", "evdist", "name of the release")
	namespace := flag.String("namespace", "default", "namespace of the release")
	kube := flag.String("kube", "1.29", "version of Kubernetes")
	apis := flag.String("api", "", "API versions of the cluster, separated by commas")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: render [options] CHART VALUES...")
		os.Exit(2)
	}
	chart := flag.Arg(0)
	answers := map[string]answer{}
	for _, file := range flag.Args()[1:] {
		values, templates, err := render(chart, file, *release, *namespace, *kube, *apis)
		found := answer{Values: values, Templates: templates}
		if err != nil {
			found.Error = err.Error()
		}
		answers[file] = found
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(chart, file, release, namespace, kube, apis string) (object, map[string]string, error) {
	about, err := read(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		return nil, nil, err
	}
	values, err := read(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return nil, nil, err
	}
	if file != "-" {
		given, err := read(file)
		if err != nil {
			return nil, nil, err
		}
		values = merge(values, given)
	}
	sources, others, err := load(chart)
	if err != nil {
		return values, nil, err
	}
	named := object{}
	for key, value := range about {
		named[strings.ToUpper(key[:1])+key[1:]] = value
	}
	parts := strings.SplitN(kube, ".", 2)
	dot := object{
		"Values": values,
		"Chart":  named,
		"Files":  others,
		"Release": object{"Name": release, "Namespace": namespace, "Service": "Helm", "Revision": 1,
			"IsInstall": true, "IsUpgrade": false},
		"Capabilities": object{
			"KubeVersion": object{"Version": "v" + kube + ".0", "Major": parts[0], "Minor": parts[1]},
			"APIVersions": versions(strings.Split(apis, ",")),
		},
	}
	texts, err := execute(sources, dot, chart)
	return values, texts, err
}

func execute(sources map[string]string, dot object, chart string) (map[string]string, error) {
	root := template.New("chart")
	// As Helm: a missing key of a map is empty, a key of a missing map is an error.
	root.Option("missingkey=zero")
	root.Funcs(functions(root))
	names := make([]string, 0, len(sources))
	for name := range sources {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if _, err := root.New(name).Parse(sources[name]); err != nil {
			return nil, err
		}
	}
	texts := map[string]string{}
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		dot["Template"] = object{"Name": name, "BasePath": path.Join(path.Base(chart), "templates")}
		var out bytes.Buffer
		if err := root.ExecuteTemplate(&out, name, dot); err != nil {
			return texts, err
		}
		texts[name] = strings.ReplaceAll(out.String(), "<no value>", "")
	}
	return texts, nil
}

// functions are sprig's less those Helm takes away, with those Helm adds.
func functions(root *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	delete(known, "env")
	delete(known, "expandenv")
	nested := map[string]int{}
	known["include"] = func(name string, data interface{}) (string, error) {
		if nested[name] > mostNested {
			return "", fmt.Errorf("%s includes itself without end", name)
		}
		nested[name]++
		defer func() { nested[name]-- }()
		var out bytes.Buffer
		err := root.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	known["tpl"] = func(text string, data interface{}) (string, error) {
		copied, err := root.Clone()
		if err != nil {
			return "", err
		}
		parsed, err := copied.New("tpl").Parse(text)
		if err != nil {
			return "", err
		}
		var out bytes.Buffer
		err = parsed.Execute(&out, data)
		return strings.ReplaceAll(out.String(), "<no value>", ""), err
	}
	known["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return value, errors.New(message)
		}
		return value, nil
	}
	known["lookup"] = func(string, string, string, string) (object, error) { return object{}, nil }
	known["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	known["fromYaml"] = func(text string) object {
		found := object{}
		if err := yaml.Unmarshal([]byte(text), &found); err != nil {
			found["Error"] = err.Error()
		}
		return found
	}
	known["fromYamlArray"] = func(text string) []interface{} {
		found := []interface{}{}
		if err := yaml.Unmarshal([]byte(text), &found); err != nil {
			found = []interface{}{err.Error()}
		}
		return found
	}
	known["toJson"] = func(value interface{}) string {
		text, err := json.Marshal(value)
		if err != nil {
			return ""
		}
		return string(text)
	}
	known["fromJson"] = func(text string) object {
		found := object{}
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			found["Error"] = err.Error()
		}
		return found
	}
	return known
}

// read gives the keys and values of a YAML file.
func read(file string) (object, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	found := object{}
	if err := yaml.Unmarshal(content, &found); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return found, nil
}

// merge puts given values over defaults, map by map; null takes a key away.
func merge(defaults, given object) object {
	merged := object{}
	for key, value := range defaults {
		merged[key] = value
	}
	for key, value := range given {
		inner, isMap := value.(object)
		before, wasMap := merged[key].(object)
		switch {
		case value == nil:
			delete(merged, key)
		case isMap && wasMap:
			merged[key] = merge(before, inner)
		default:
			merged[key] = value
		}
	}
	return merged
}

// load reads the templates of a chart, and its other files.
func load(chart string) (map[string]string, files, error) {
	sources, others := map[string]string{}, files{}
	err := filepath.Walk(chart, func(file string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(chart, file)
		if err != nil {
			return err
		}
		inside = filepath.ToSlash(inside)
		switch {
		case strings.HasPrefix(inside, "templates/"):
			sources[path.Join(filepath.Base(chart), inside)] = string(content)
		case inside != "Chart.yaml" && inside != "values.yaml" && inside != "values.schema.json":
			others[inside] = content
		}
		return nil
	})
	return sources, others, err
}
